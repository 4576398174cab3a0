/*
 * An iBMC for the tests: a module for `ipmi_sim` of OpenIPMI that answers Huawei's two OEM commands, 30/94 (present
 * alarms) and 30/90 (electronic label), from a text file (node-faults 3, 6, 10). Other commands are ipmi_sim's own.
 *
 * Loaded by a line of lan.conf:  loadlib "/path/ibmc_module.so" "/path/alarms"
 *
 * The file is read again before each command when it has changed. Whoever writes it replaces it in one step.
 * One alarm a line, numbers hexadecimal (CODE, SUBJECT) or decimal (the others), as in `0000001D 1721762816 3 00 1`:
 *
 *     CODE SECONDS SEVERITY SUBJECT DEVICE
 *
 * Lines with `!` set what is told besides, and what goes wrong:
 *
 *     !serial TEXT   !vendor TEXT    product serial number and manufacturer of the label, at most 63
 *                                    characters; without: empty
 *     !page N        alarms in one answer, 1 to 16 (16)
 *     !cc HEX        alarms: this completion code and nothing else
 *     !cut N         alarms: the last N bytes of the body are missing
 *     !mid HEX       alarms: manufacturer id
 *     !count N       alarms: the count byte
 *     !total N       alarms: the total
 *     !delay_ms N    alarms: answer so much later; meanwhile nobody else is answered
 *     !empty N       1: alarms: no alarm in the answer and count 0; the total stays
 *     !silent N      1: alarms: no answer at all
 *     !from N        !cc !cut !count !delay_ms !empty !silent only where the wanted index is >= N (0)
 *     !times N       these six only for the first N such requests after the file has changed; 0: always (0)
 *     !next_total N  alarms: the total in all answers but those for index 0
 *     !shrink N      once index > 0 has been asked for, only the first N alarms exist
 *     !label_cc HEX  label: this completion code and nothing else
 *     !label_part N  label: at most N bytes of text in one answer, whose control byte is 00 when more follows (all)
 *
 * A line that is none of these is reported on stderr and ignored. Each well-formed question for alarms is reported
 * there before it is answered, as in `ibmc: asked for alarms from 12`.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <OpenIPMI/mcserv.h>

#define OEM_NETFN 0x30
#define ALARMS_COMMAND 0x94
#define LABEL_COMMAND 0x90
#define HUAWEI 0x0007DB
#define MOST_ALARMS 1000
#define MOST_IN_A_PAGE 16u /* 8 + 16 * 15 = 248 of 255 bytes */
#define HEAD_BYTES 8u      /* completion code, manufacturer, total, count, reserved */
#define ALARM_BYTES 15u
#define ANSWER_BYTES 300u
#define LABEL_CHARACTERS 63

struct alarm {
    unsigned long code, raised_s;
    unsigned int severity, subject, device;
};

/* What the file says. Numbers that nobody set are UNSET. */
#define UNSET (-1L)
static struct {
    struct alarm alarms[MOST_ALARMS];
    unsigned int count;
    char serial[LABEL_CHARACTERS + 1], vendor[LABEL_CHARACTERS + 1];
    long page, cc, cut, mid, say_count, say_total, delay_ms, empty, silent, from, times, next_total, shrink;
    long label_cc, label_part;
} told;

static const struct {
    const char *word;
    long *where;
    int base;
    long unless_told;
} numbers[] = {
    {"page", &told.page, 10, MOST_IN_A_PAGE},
    {"cc", &told.cc, 16, 0},
    {"cut", &told.cut, 10, 0},
    {"mid", &told.mid, 16, HUAWEI},
    {"count", &told.say_count, 10, UNSET},
    {"total", &told.say_total, 10, UNSET},
    {"delay_ms", &told.delay_ms, 10, 0},
    {"empty", &told.empty, 10, 0},
    {"silent", &told.silent, 10, 0},
    {"from", &told.from, 10, 0},
    {"times", &told.times, 10, 0},
    {"next_total", &told.next_total, 10, UNSET},
    {"shrink", &told.shrink, 10, UNSET},
    {"label_cc", &told.label_cc, 16, 0},
    {"label_part", &told.label_part, 10, LABEL_CHARACTERS},
};
#define NUMBERS (sizeof numbers / sizeof numbers[0])

static char path[1024];
static struct stat read_as; /* the file as it was when it was read */
static long trouble_left;   /* of !times */
static int shrunk;          /* !shrink has happened */

/* The value of a line `!WORD VALUE`, NULL for other lines. */
static const char *value_of(const char *line, const char *word)
{
    const size_t length = strlen(word);

    return line[0] == '!' && !strncmp(line + 1, word, length) && line[length + 1] == ' ' ? line + length + 2 : NULL;
}

static int set_text(const char *line, const char *word, char *where)
{
    const char *value = value_of(line, word);

    if (!value || strlen(value) > LABEL_CHARACTERS)
        return 0;
    strcpy(where, value);
    return 1;
}

static int set_number(const char *line)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        const char *value = value_of(line, numbers[i].word);
        char *end;

        if (!value)
            continue;
        const long number = strtol(value, &end, numbers[i].base);
        if (end == value || *end || number < 0)
            return 0;
        *numbers[i].where = number;
        return 1;
    }
    return 0;
}

static int add_alarm(const char *line)
{
    struct alarm alarm;
    int used = 0;

    if (told.count == MOST_ALARMS ||
        sscanf(line, "%lx %lu %u %x %u%n", &alarm.code, &alarm.raised_s, &alarm.severity, &alarm.subject, &alarm.device,
               &used) != 5 ||
        line[used] || alarm.severity > 7 || alarm.subject > 0xFF || alarm.device > 0xFF)
        return 0;
    told.alarms[told.count++] = alarm;
    return 1;
}

static void forget(void)
{
    memset(&told, 0, sizeof told);
    for (size_t i = 0; i < NUMBERS; i++)
        *numbers[i].where = numbers[i].unless_told;
    shrunk = 0;
}

/* Without a file there is no alarm and no label. */
static void read_again_if_changed(void)
{
    struct stat now;
    char line[300];
    FILE *file;

    memset(&now, 0, sizeof now);
    if (stat(path, &now) == 0 && now.st_ino == read_as.st_ino && now.st_size == read_as.st_size &&
        now.st_mtim.tv_sec == read_as.st_mtim.tv_sec && now.st_mtim.tv_nsec == read_as.st_mtim.tv_nsec)
        return;
    read_as = now;
    forget();
    file = fopen(path, "r");
    if (!file)
        return;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] && !set_text(line, "serial", told.serial) &&
            !set_text(line, "vendor", told.vendor) && !set_number(line) && !add_alarm(line))
            fprintf(stderr, "ibmc: not understood in %s: %s\n", path, line);
    }
    fclose(file);
    if (told.page < 1 || told.page > MOST_IN_A_PAGE)
        told.page = MOST_IN_A_PAGE;
    if (told.label_part < 1)
        told.label_part = 1;
    trouble_left = told.times;
}

/* Lowest byte first. */
static void put(unsigned char *where, unsigned long value, unsigned int bytes)
{
    while (bytes--) {
        *where++ = value & 0xFF;
        value >>= 8;
    }
}

/* This request meets the trouble that the file asks for. */
static int in_trouble(unsigned int index)
{
    if (index < (unsigned long)told.from)
        return 0;
    return told.times == 0 || trouble_left-- > 0;
}

static void wait_ms(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};

    nanosleep(&pause, NULL);
}

/* Fill the page from `index` on. Returns the alarms in it; *total: all that match. */
static unsigned int fill_page(unsigned char *body, unsigned int index, unsigned int mask, unsigned int subject,
                              unsigned int *total)
{
    const unsigned int known = shrunk && told.shrink < (long)told.count ? (unsigned int)told.shrink : told.count;
    unsigned int filled = 0;

    *total = 0;
    for (unsigned int i = 0; i < known; i++) {
        const struct alarm *alarm = &told.alarms[i];

        if (!(mask >> alarm->severity & 1) || (subject != 0xFF && subject != alarm->subject))
            continue;
        if ((*total)++ < index || filled == (unsigned int)told.page)
            continue;
        unsigned char *record = body + ALARM_BYTES * filled++;
        memset(record, 0, ALARM_BYTES);
        put(record, alarm->code, 4);
        put(record + 4, alarm->raised_s, 4);
        record[8] = alarm->severity;
        record[9] = alarm->subject;
        record[10] = alarm->device;
    }
    return filled;
}

/* Each handler: the length of the answer, completion code first; 0 for none. */
static unsigned int answer_alarms(const msg_t *request, unsigned char *answer)
{
    static const unsigned char prefix[] = {0xDB, 0x07, 0x00, 0x40, 0x00};
    unsigned int total, count, index, length;

    if (request->len != 9) {
        answer[0] = 0xC7;
        return 1;
    }
    if (memcmp(request->data, prefix, sizeof prefix)) {
        answer[0] = 0xC1;
        return 1;
    }
    index = request->data[5] | request->data[6] << 8;
    fprintf(stderr, "ibmc: asked for alarms from %u\n", index);
    if (index > 0 && told.shrink != UNSET)
        shrunk = 1;
    const int trouble = in_trouble(index);
    if (trouble && told.delay_ms)
        wait_ms(told.delay_ms);
    if (trouble && told.silent)
        return 0;
    if (trouble && told.cc) {
        answer[0] = told.cc;
        return 1;
    }
    count = fill_page(answer + HEAD_BYTES, index, request->data[7], request->data[8], &total);
    if (trouble && told.empty)
        count = 0;
    if (told.say_total != UNSET)
        total = told.say_total;
    if (index > 0 && told.next_total != UNSET)
        total = told.next_total;
    answer[0] = 0;
    put(answer + 1, told.mid, 3);
    put(answer + 4, total, 2);
    answer[6] = trouble && told.say_count != UNSET ? told.say_count : (long)count;
    answer[7] = 0;
    length = HEAD_BYTES + ALARM_BYTES * count;
    if (trouble && told.cut < (long)(ALARM_BYTES * count))
        length -= told.cut;
    return length;
}

static unsigned int answer_label(const msg_t *request, unsigned char *answer)
{
    static const unsigned char prefix[] = {0x05, 0x00, 0x03};
    const char *text;
    size_t offset, length;

    if (request->len != 6) {
        answer[0] = 0xC7;
        return 1;
    }
    if (memcmp(request->data, prefix, sizeof prefix)) {
        answer[0] = 0xC1;
        return 1;
    }
    answer[0] = told.label_cc;
    if (told.label_cc)
        return 1;
    text = request->data[3] == 4 ? told.serial : request->data[3] == 0 ? told.vendor : "";
    length = strlen(text);
    offset = request->data[4] < length ? request->data[4] : length;
    length -= offset;
    if (length > (size_t)told.label_part)
        length = told.label_part;
    answer[1] = text[offset + length] ? 0x00 : 0x80;
    memcpy(answer + 2, text + offset, length);
    return 2 + length;
}

/*
 * ipmi_sim 2.0.33 gives registered command handlers a buffer of 36 bytes on its stack (smi_send in ipmi_sim.c), so an
 * answer with three alarms kills it. Therefore these commands are taken where a channel, LAN or VM, sends them.
 */
static int (*send_others)(channel_t *channel, msg_t *request);

static int send_request(channel_t *channel, msg_t *request)
{
    unsigned char answer[ANSWER_BYTES];
    unsigned int length;

    if (request->netfn != OEM_NETFN || (request->cmd != ALARMS_COMMAND && request->cmd != LABEL_COMMAND))
        return send_others(channel, request);
    read_again_if_changed();
    length = request->cmd == ALARMS_COMMAND ? answer_alarms(request, answer) : answer_label(request, answer);
    if (length > 0)
        ipmi_handle_smi_rsp(channel, request, answer, length);
    return 0;
}

int ipmi_sim_module_print_version(sys_data_t *system, char *options);
int ipmi_sim_module_init(sys_data_t *system, const char *options);

int ipmi_sim_module_print_version(sys_data_t *system, char *options)
{
    (void)system;
    (void)options;
    puts("ibmc_module 1");
    return 0;
}

/* options: the path of the file. */
int ipmi_sim_module_init(sys_data_t *system, const char *options)
{
    if (!options || !options[0] || strlen(options) >= sizeof path) {
        fprintf(stderr, "ibmc: the module needs the path of its file\n");
        return -1;
    }
    strcpy(path, options);
    forget();
    signal(SIGPIPE, SIG_IGN); /* else a guest that goes away early would kill ipmi_sim */
    send_others = system->csmi_send;
    system->csmi_send = send_request;
    return 0;
}
