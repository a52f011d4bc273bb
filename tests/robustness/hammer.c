/*
 * Hammer: cuts and damages traces and reads each result in every way the library has, in this
 * process, so that a sanitizer sees all of it. Nothing may crash, leak, hang or allocate wildly,
 * and
 *
 *   - times increase strictly, and every string and stack of an event can be looked up;
 *   - a cut v2 trace still yields every event of the generations that lie wholly before the cut.
 *
 * What is done to a file depends only on its bytes, the seed and the index of the damage, all of
 * which are printed when something breaks: `hammer --only=INDEX FILE` does it again.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trail/read.h>
#include <unistd.h>

/* Present under AddressSanitizer and its like only. NOLINTBEGIN(bugprone-reserved-identifier) */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
                                              void (*free_hook)(const volatile void *))
    __attribute__((weak));
/* NOLINTEND(bugprone-reserved-identifier) */

#define SECONDS_AN_INPUT 120 /* generous: a sanitizer and a busy machine */
#define SMALL_FILE       16384
/* One allocation may take this much, whatever the input, and this much more for each byte of it. */
#define ALLOCATION_BASE     (16u << 20)
#define ALLOCATION_PER_BYTE 64

enum way { WAY_PLAIN, WAY_PARTIAL, WAY_REPAIR, WAY_V1, WAY_WALK, WAY_RECORDS, WAYS };

static const char *const way_names[WAYS] = {"plain",   "partial", "repair",
                                            "v1 view", "walk",    "records"};

struct options {
    uint64_t truncations, mutations; /* of a file, at most */
    uint64_t budget;                 /* bytes to read of a file in all, which limits both */
    uint64_t seed;
    long only;
};

/* What is being read: for the message when it goes wrong. */
static struct {
    const char *file;
    const char *damage;
    const char *way;
    uint64_t index;
    size_t size;
    size_t largest; /* allocation */
} now;

static uint64_t failures;

struct file {
    const char *path;
    uint8_t *data;
    size_t size;
    int version;
    /* v2: where each generation ends in the file, and how many events there are up to there */
    size_t generations, capacity;
    struct {
        uint64_t end, events;
    } * generation;
};

static void tell_where(void)
{
    char line[512];
    /* In a handler of signals too: it takes no memory, and what follows is the end of the process.
     * NOLINTNEXTLINE(bugprone-signal-handler) */
    int n = snprintf(line, sizeof line, "hammer: %s: %s %" PRIu64 " (%zu bytes), reading: %s\n",
                     now.file, now.damage, now.index, now.size, now.way);
    if (n > 0 &&
        write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1) < 0)
        return;
}

static void on_alarm(int signal)
{
    (void)signal;
    static const char text[] = "hammer: this takes too long\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) > 0)
        tell_where();
    abort();
}

static void on_malloc(const volatile void *memory, size_t size)
{
    (void)memory;
    /* By two threads, where one reads ahead: the largest of either is near enough. */
    if (size > __atomic_load_n(&now.largest, __ATOMIC_RELAXED))
        __atomic_store_n(&now.largest, size, __ATOMIC_RELAXED);
}

static void on_free(const volatile void *memory)
{
    (void)memory;
}

static void fail(const char *what)
{
    fprintf(stderr, "hammer: FAIL: %s\n", what);
    tell_where();
    failures++;
}

/* MARK: Reading in every way */

static volatile uint64_t sink; /* what was looked up is used */

static void touch_string(const trail_reader *reader, trail_string_handle handle)
{
    trail_string text = trail_reader_string(reader, handle);
    for (size_t i = 0; i < text.size; i++)
        sink += (uint8_t)text.data[i];
}

static void touch_stack(const trail_reader *reader, trail_stack_handle handle)
{
    size_t count;
    const trail_frame *frame = trail_reader_stack(reader, handle, &count);
    for (size_t i = 0; i < count; i++)
        sink += frame[i].pc + frame[i].line + trail_reader_string(reader, frame[i].function).size +
                trail_reader_string(reader, frame[i].file).size;
}

static void touch(const trail_reader *reader, const trail_event *event)
{
    touch_stack(reader, event->stack);
    switch (event->kind) {
    case TRAIL_LABEL:
        touch_string(reader, event->label.text);
        break;
    case TRAIL_RANGE_BEGIN:
    case TRAIL_RANGE_ACTIVE:
    case TRAIL_RANGE_END:
        touch_string(reader, event->range.name);
        break;
    case TRAIL_TASK_BEGIN:
    case TRAIL_TASK_END:
        touch_string(reader, event->task.type);
        break;
    case TRAIL_REGION_BEGIN:
    case TRAIL_REGION_END:
        touch_string(reader, event->region.type);
        break;
    case TRAIL_LOG:
        touch_string(reader, event->log.category);
        touch_string(reader, event->log.message);
        break;
    case TRAIL_STATE_TRANSITION:
        touch_string(reader, event->transition.reason);
        touch_stack(reader, event->transition.stack);
        break;
    case TRAIL_SYNC:
        if (event->sync.snapshot)
            sink += event->sync.snapshot->mono_ns;
        break;
    default:
        break;
    }
}

/* Reads all; returns how many events. */
static uint64_t drain(trail_reader *reader)
{
    const trail_event *events;
    uint64_t total = 0;
    int64_t last = INT64_MIN;
    long n;
    while ((n = trail_reader_next_batch(reader, &events)) > 0) {
        for (long i = 0; i < n; i++) {
            if (events[i].time_ns <= last) {
                fail("times do not increase");
                return total;
            }
            last = events[i].time_ns;
            touch(reader, &events[i]);
        }
        total += (uint64_t)n;
    }
    if (n < 0 && trail_reader_error(reader)->message[0] == '\0')
        fail("an error without a message");
    return total;
}

static void drain_v1(trail_reader *reader)
{
    const trail_v1_event *events;
    long n;
    while ((n = trail_reader_next_v1_batch(reader, &events)) > 0) {
        for (long i = 0; i < n; i++) {
            touch_string(reader, events[i].text[0]);
            touch_string(reader, events[i].text[1]);
            touch_stack(reader, events[i].stack);
        }
    }
}

static uint64_t read_events(trail_source *source, enum way way)
{
    trail_reader_options options = {.view = way == WAY_V1 ? TRAIL_VIEW_V1 : TRAIL_VIEW_EVENTS,
                                    .partial = way == WAY_PARTIAL,
                                    .ahead = way == WAY_PARTIAL && now.index % 8 == 0,
                                    .repair = way == WAY_REPAIR};
    trail_error err = {0};
    trail_reader *reader = trail_reader_open(source, &options, &err);
    if (!reader) {
        if (err.message[0] == '\0')
            fail("an error without a message");
        return 0;
    }
    uint64_t events = 0;
    if (way == WAY_V1)
        drain_v1(reader);
    else
        events = drain(reader);
    trail_reader_close(reader);
    return events;
}

static void read_walk(trail_source *source)
{
    trail_walk *walk = trail_walk_open(source, NULL);
    trail_batch batch;
    while (walk && trail_walk_next(walk, &batch) > 0) {
        const uint8_t *data = trail_walk_data(walk);
        for (uint64_t i = 0; data && i < batch.size; i += 64)
            sink += data[i];
    }
    trail_walk_close(walk);
}

static void read_records(trail_source *source)
{
    trail_records *records = trail_records_open(source, NULL);
    const trail_record *record;
    while (records && trail_records_next(records, &record) > 0) {
        sink += (uint64_t)record->offset + record->size + (record->name != NULL);
        for (unsigned i = 0; i < record->args; i++)
            sink += record->arg[i];
        for (unsigned i = 0; i < record->frames * record->frame_fields; i++)
            sink += record->frame[i];
        for (size_t i = 0; record->has_data && i < record->data.size; i++)
            sink += (uint8_t)record->data.data[i];
    }
    trail_records_close(records);
}

/* Returns how many events a reader delivered; 0 for what is not a reader of events. */
static uint64_t read_one_way(const uint8_t *data, size_t size, enum way way)
{
    /* A copy of exactly this size, so that a sanitizer sees the first byte read behind it. */
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(3);
    memcpy(copy, data, size);
    now.way = way_names[way];
    now.size = size;
    now.largest = 0;
    alarm(SECONDS_AN_INPUT);
    trail_source *source = trail_source_open_memory(copy, size, NULL);
    uint64_t events = 0;
    if (source && way == WAY_WALK)
        read_walk(source);
    else if (source && way == WAY_RECORDS)
        read_records(source);
    else if (source)
        events = read_events(source, way);
    trail_source_close(source);
    alarm(0);
    if (now.largest > ALLOCATION_BASE + ALLOCATION_PER_BYTE * size) {
        fprintf(stderr, "hammer: %zu bytes at once\n", now.largest);
        fail("an allocation out of proportion");
    }
    free(copy);
    return events;
}

/* MARK: What a good v2 file holds */

static void add_generation(struct file *file, uint64_t end)
{
    if (file->generations == file->capacity) {
        file->capacity = file->capacity ? file->capacity * 2 : 16;
        void *memory = realloc(file->generation, file->capacity * sizeof *file->generation);
        if (!memory)
            exit(3);
        file->generation = memory;
    }
    file->generation[file->generations].end = end;
    file->generation[file->generations++].events = 0;
}

static void find_generations(struct file *file)
{
    trail_source *source = trail_source_open_memory(file->data, file->size, NULL);
    trail_walk *walk = source ? trail_walk_open(source, NULL) : NULL;
    trail_batch batch;
    uint64_t current = 0, end = 0;
    if (walk)
        file->version = trail_walk_version(walk);
    while (walk && trail_version_is_v2(file->version) && trail_walk_next(walk, &batch) > 0) {
        if (current != 0 && batch.generation != current && batch.kind != TRAIL_BATCH_END_GENERATION)
            add_generation(file, end);
        current = batch.generation;
        end = (uint64_t)batch.offset + batch.header_size + batch.size;
    }
    if (current != 0)
        add_generation(file, end);
    trail_walk_close(walk);
    trail_source_close(source);
}

/* The n-th Sync (from 0) stands behind all events of the first n generations. */
static void count_events(struct file *file)
{
    trail_source *source = trail_source_open_memory(file->data, file->size, NULL);
    trail_reader *reader = source ? trail_reader_open(source, NULL, NULL) : NULL;
    const trail_event *event;
    uint64_t events = 0;
    size_t syncs = 0, known = 0;
    while (reader && trail_reader_next(reader, &event) > 0) {
        if (event->kind == TRAIL_SYNC && syncs++ > 0 && known < file->generations)
            file->generation[known++].events = events;
        events++;
    }
    file->generations = known; /* a bad file promises nothing behind its first error */
    trail_reader_close(reader);
    trail_source_close(source);
}

/* MARK: Damage */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* One change at a random place of data[0, size); there is room for 16 bytes more. Returns the new
 * size. */
static size_t mutate(uint8_t *data, size_t size, uint64_t *random)
{
    uint64_t r = next_random(random);
    if (size < 32)
        return size;
    /* One in eight falls into the first bytes, where the header and the first batch are. */
    size_t at = (size_t)(r % (r >> 61 == 0 ? 32 : size));
    size_t length = (size_t)(next_random(random) % 12 + 1);
    if (length > size - at)
        length = size - at;
    uint64_t value = next_random(random);
    switch (r >> 32 & 7) {
    case 0:
        data[at] ^= (uint8_t)(1 << (value & 7));
        return size;
    case 1:
        data[at] = (uint8_t)value;
        return size;
    case 2:
        data[at] = (uint8_t)(value & 1 ? 0xff : 0);
        return size;
    case 3: /* a huge number */
        memset(data + at, 0xff, length);
        data[at + length - 1] = 0x01;
        return size;
    case 4: /* bytes are lost */
        memmove(data + at, data + at + length, size - at - length);
        return size - length;
    case 5: /* bytes come twice */
        memmove(data + at + length, data + at, size - at);
        return size + length;
    case 6: { /* a piece of elsewhere */
        size_t from = (size_t)(value % (size - length));
        memmove(data + at, data + from, length);
        return size;
    }
    default: /* one more or one less */
        data[at] = (uint8_t)(data[at] + (value & 1 ? 1 : 255));
        return size;
    }
}

/* Small files are read in every way each time; for large ones the ways take turns. */
static void read_damaged(const struct file *file, const uint8_t *data, size_t size, uint64_t index)
{
    now.index = index;
    if (file->size <= SMALL_FILE) {
        for (int way = 0; way < WAYS; way++)
            read_one_way(data, size, (enum way)way);
    } else {
        read_one_way(data, size, (enum way)(index % WAYS));
    }
}

static void truncate_at(const struct file *file, size_t cut, uint64_t index)
{
    now.damage = "cut";
    read_damaged(file, file->data, cut, index);
    uint64_t promised = 0;
    for (size_t i = 0; i < file->generations && file->generation[i].end <= cut; i++)
        promised = file->generation[i].events;
    if (promised > 0 && read_one_way(file->data, cut, WAY_PLAIN) < promised)
        fail("a whole generation before the cut is lost");
}

static uint64_t within_budget(const struct file *file, const struct options *options,
                              uint64_t wanted)
{
    uint64_t ways = file->size <= SMALL_FILE ? WAYS : 1;
    uint64_t affordable = options->budget / (file->size * ways + 1) + 1;
    return wanted < affordable ? wanted : affordable;
}

static uint64_t truncations(const struct file *file, const struct options *options)
{
    uint64_t wanted = file->size < SMALL_FILE ? file->size : options->truncations;
    uint64_t count = within_budget(file, options, wanted);
    for (uint64_t i = 0; i < count; i++)
        if (options->only < 0 || (uint64_t)options->only == i)
            truncate_at(file, (size_t)(file->size * i / count), i);
    return count;
}

static uint64_t mutations(const struct file *file, const struct options *options)
{
    uint64_t count = within_budget(file, options, options->mutations);
    uint8_t *data = malloc(file->size + 256);
    if (!data)
        exit(3);
    now.damage = "mutation";
    for (uint64_t i = 0; i < count; i++) {
        if (options->only >= 0 && (uint64_t)options->only != i)
            continue;
        uint64_t random = options->seed * UINT64_C(0x100000001b3) + i;
        memcpy(data, file->data, file->size);
        size_t size = file->size;
        for (uint64_t changes = next_random(&random) % 4 + 1; changes > 0; changes--)
            size = mutate(data, size, &random);
        read_damaged(file, data, size, i);
    }
    free(data);
    return count;
}

static bool load(struct file *file)
{
    FILE *stream = fopen(file->path, "rb");
    if (!stream || fseek(stream, 0, SEEK_END) != 0) {
        perror(file->path);
        return false;
    }
    long size = ftell(stream);
    rewind(stream);
    file->size = size > 0 ? (size_t)size : 0;
    file->data = malloc(file->size + 1);
    bool ok = file->data && fread(file->data, 1, file->size, stream) == file->size;
    if (!ok)
        perror(file->path);
    fclose(stream);
    return ok;
}

static void hammer(const char *path, const struct options *options)
{
    struct file file = {.path = path};
    if (!load(&file))
        exit(3);
    now.file = path;
    now.damage = "whole";
    now.index = 0;
    for (int way = 0; way < WAYS; way++)
        read_one_way(file.data, file.size, (enum way)way);
    find_generations(&file);
    count_events(&file);
    uint64_t cuts = truncations(&file, options), changes = mutations(&file, options);
    printf("%s: %zu bytes, %" PRIu64 " cuts, %" PRIu64 " mutations\n", path, file.size, cuts,
           changes);
    fflush(stdout);
    free(file.generation);
    free(file.data);
}

static const char usage[] =
    "usage: hammer [options] FILE...\n"
    "  --truncations=N  cuts of a file of 16 KiB or more (default 1000); smaller ones at every "
    "byte\n"
    "  --mutations=N    damaged copies of a file (default 10000)\n"
    "  --budget=BYTES   read at most about this much of a file in all, for each of the two\n"
    "  --seed=N\n"
    "  --only=INDEX     only the cut and the mutation of this index\n";

int main(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"truncations", required_argument, NULL, 't'}, {"mutations", required_argument, NULL, 'm'},
        {"budget", required_argument, NULL, 'b'},      {"seed", required_argument, NULL, 's'},
        {"only", required_argument, NULL, 'o'},        {0},
    };
    struct options options = {
        .truncations = 1000, .mutations = 10000, .budget = UINT64_MAX, .seed = 1, .only = -1};
    int option;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (option) {
        case 't':
            options.truncations = strtoull(optarg, NULL, 10);
            break;
        case 'm':
            options.mutations = strtoull(optarg, NULL, 10);
            break;
        case 'b':
            options.budget = strtoull(optarg, NULL, 10);
            break;
        case 's':
            options.seed = strtoull(optarg, NULL, 10);
            break;
        case 'o':
            options.only = strtol(optarg, NULL, 10);
            break;
        default:
            fputs(usage, stderr);
            return 2;
        }
    }
    if (optind == argc) {
        fputs(usage, stderr);
        return 2;
    }
    signal(SIGALRM, on_alarm);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(tell_where);
    if (__sanitizer_install_malloc_and_free_hooks)
        __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    for (int i = optind; i < argc; i++)
        hammer(argv[i], &options);
    if (failures)
        fprintf(stderr, "hammer: %" PRIu64 " failures\n", failures);
    return failures != 0;
}
