#include "dcmi_shim.h"
#include "lq_shim.h"
