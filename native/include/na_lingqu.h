/*
 * Prototypes of liblingqu-dcmi.so (A3 switch library), declared by us from section 16 of the fact sheet. The handler
 * arguments are those of the exported symbols, which upstream's header leaves out.
 */
#ifndef NA_LINGQU_H
#define NA_LINGQU_H

#include "na_lingqu_types.h"

int lq_dcmi_init(void);
int lq_dcmi_subscribe_fault_event(struct lq_dcmi_event_filter filter, lq_dcmi_fault_event_handler handler);
int lq_dcmi_get_fault_info(unsigned int list_len, unsigned int *count, struct LqDcmiEvent *list);
int lq_dcmi_get_version(unsigned int *kernel_version, unsigned int *library_version);
int lq_dcmi_get_fault_nums(unsigned int *count);

#endif
