/*
 * The shim: libdcmi.so looked up at run time, both API generations behind one set of calls.
 *
 * A chip is addressed by all its names (card, device, logic id); each generation takes what it needs.
 * Every call returns the library's own code, or NA_NO_SYMBOL when this driver does not offer the function.
 * Outputs are filled from zeroed buffers with room to spare: drivers have grown structs before (native-abi 20).
 * One library per process, one calling thread (the vendor demands it); events may come from any thread.
 */
#ifndef NA_DCMI_SHIM_H
#define NA_DCMI_SHIM_H

#include <stdint.h>

#include "na_dcmi.h"
#include "shim_codes.h"

#include "dcmi_calls.h"

#endif
