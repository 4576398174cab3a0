/*
 * Structures of liblingqu-dcmi.so (A3 switch library), declared by us from section 16 of the fact sheet. No includes
 * and no prototypes, so that cffi can read it as well.
 */
#ifndef NA_LINGQU_TYPES_H
#define NA_LINGQU_TYPES_H

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

#endif
