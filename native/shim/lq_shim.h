/*
 * The shim of liblingqu-dcmi.so, looked up at run time. Every call returns the library's own code, or NA_NO_SYMBOL
 * when the library lacks the function: upstream calls through NULL then (lingqu-switch-faults 2.1).
 * One library per process, one calling thread; events come on a thread of the library.
 */
#ifndef NA_LQ_SHIM_H
#define NA_LQ_SHIM_H

#include <stdint.h>

#include "na_lingqu.h"
#include "shim_codes.h"

#include "lq_calls.h"

#endif
