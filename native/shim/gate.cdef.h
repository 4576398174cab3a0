/* What Python sees of C. Run through the preprocessor at build time, so the ABI structs come from the one header. */
#include "na_dcmi_types.h"

/* Sizes only, until the switch source arrives. */
struct LqDcmiEvent { ...; };
struct lq_dcmi_event_filter { ...; };

#include "dcmi_calls.h"
