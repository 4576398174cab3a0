/* Nothing but the compile-time proof of the ABI layout (native-abi 18.3). */
#include "na_abi_sizes.h"
