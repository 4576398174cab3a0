/* What the shim itself answers, beside the codes of the libraries (native-abi 3.1). */
#ifndef NA_SHIM_CODES_H
#define NA_SHIM_CODES_H

#define NA_NO_SYMBOL (-99998)
#define NA_NOT_LOADED (-99999)

#endif
