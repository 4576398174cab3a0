/*
 * Structures and prototypes of liblingqu-dcmi.so (A3 switch library), declared by us from section 16 of the
 * fact sheet. The handler arguments are those of the exported symbols, which upstream's header leaves out.
 */
#ifndef NA_LINGQU_H
#define NA_LINGQU_H

#define LQ_DCMI_NO_SUBTYPE 0xFFFFFFFFu    /* subType: no fault id, port down (16.2) */
#define LQ_DCMI_WHOLE_CHIP_PORT 0xFFFFu   /* switchPortid: fault of the whole chip (16.2) */

struct LqDcmiEvent {
    unsigned int eventType; /* alarm id */
    unsigned int subType;   /* fault id */
    unsigned short peerportDevice; /* 0 CPU or whole chip, 1 NPU, 2 L2 switch */
    unsigned short peerportId;
    unsigned short switchChipid; /* 0..6 */
    unsigned short switchPortid; /* 0..47 */
    unsigned char severity;      /* 0 hint, 1 minor, 2 major, 3 critical */
    unsigned char assertion;     /* 0 recovery, 1 occurrence, 2 notification */
    char res[6];
    unsigned int eventSerialNum;
    unsigned int notifySerialNum;
    unsigned long alarmRaisedTime; /* milliseconds since the epoch, 0 unknown (21) */
    unsigned char additionalParam[40];
    char additionalInfo[32];
};

struct lq_dcmi_event_filter {
    unsigned int filterFlag; /* 0 all; bit 0 eventTypeId, bit 1 eventId, bit 2 severity, bit 3 chipId */
    unsigned int eventTypeId;
    unsigned int eventId;
    unsigned char severity;
    unsigned int chipId;
};

typedef void (*lq_dcmi_fault_event_handler)(struct LqDcmiEvent *event);

int lq_dcmi_init(void);
int lq_dcmi_subscribe_fault_event(struct lq_dcmi_event_filter filter, lq_dcmi_fault_event_handler handler);
int lq_dcmi_get_fault_info(unsigned int list_len, unsigned int *count, struct LqDcmiEvent *list);
int lq_dcmi_get_version(unsigned int *kernel_version, unsigned int *library_version);
int lq_dcmi_get_fault_nums(unsigned int *count);

#endif
