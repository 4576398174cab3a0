#include "dcmi_shim.h"
#include "na_lingqu.h"
