/* What Python sees of C. Run through the preprocessor at build time, so the ABI structs come from the one header. */
#include "na_dcmi_types.h"
#include "na_lingqu_types.h"

#include "dcmi_calls.h"
#include "lq_calls.h"
