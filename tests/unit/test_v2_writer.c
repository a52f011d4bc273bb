/*
 * The writer of v2 traces: its bytes compared with the description of the format (§5.1), its events
 * with what libtrail and Go's tools read, its limits, and what remains of a trace if memory, the
 * sink or the caller fails.
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "write/v2_writer.h"

static const int versions[] = {22, 23, 25, 26};
#define VERSIONS (sizeof versions / sizeof *versions)

/* MARK: Memory that can fail and is counted; the linker sends the library's calls here */

static struct {
    long left;       /* calls that succeed; negative: all */
    long used, most; /* bytes; excludes the C library's own calls */
} heap = {.left = -1};

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for what --wrap wraps. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *old);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *old);
/* NOLINTEND(bugprone-reserved-identifier) */

static bool heap_gives(void)
{
    if (heap.left == 0)
        return false;
    heap.left -= heap.left > 0;
    return true;
}

static void *heap_count(void *memory)
{
    heap.used += (long)(memory ? malloc_usable_size(memory) : 0);
    heap.most = heap.used > heap.most ? heap.used : heap.most;
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return heap_gives() ? heap_count(__real_malloc(size)) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return heap_gives() ? heap_count(__real_calloc(count, size)) : NULL;
}

void *__wrap_realloc(void *old, size_t size)
{
    if (!heap_gives())
        return NULL;
    heap.used -= (long)(old ? malloc_usable_size(old) : 0);
    return heap_count(__real_realloc(old, size));
}

void __wrap_free(void *old)
{
    heap.used -= (long)(old ? malloc_usable_size(old) : 0);
    __real_free(old);
}

/* MARK: A sink that keeps, and may fail */

struct file {
    char *data;
    size_t size, capacity;
    long fail_at; /* which write fails, from 1; 0: none */
    long writes;
};

static bool file_write(void *context, const void *data, size_t size)
{
    struct file *file = context;
    assert_true(file->fail_at == 0 || file->writes < file->fail_at); /* not called again */
    if (++file->writes == file->fail_at) {
        errno = ENOSPC;
        return false;
    }
    while (file->size + size > file->capacity) {
        file->capacity = file->capacity ? 2 * file->capacity : 1 << 20;
        file->data = __real_realloc(file->data, file->capacity);
        assert_non_null(file->data);
    }
    memcpy(file->data + file->size, data, size);
    file->size += size;
    return true;
}

static void file_clear(struct file *file)
{
    __real_free(file->data);
    *file = (struct file){0};
}

static struct v2_writer *open_writer(int version, struct file *file)
{
    trail_error err;
    struct v2_writer *w = v2_writer_open(version, &(trail_sink){file_write, file}, &err);
    assert_non_null(w);
    return w;
}

static void close_writer(struct v2_writer *w)
{
    trail_error err;
    if (!v2_writer_close(w, &err))
        fail_msg("closing: %s", err.message);
}

static trail_string text_of(const char *text)
{
    return (trail_string){text, strlen(text)};
}

/* MARK: Bytes */

/* Batch headers of generation 1; sizes take three bytes. M 2^64-1 is nine times FF and a 01. */
#define NO_M         0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
#define TIME_1000    0xe8, 0x07 /* 1000 = 7 * 128 + 0x68 */
#define A_BILLION    0x80, 0x94, 0xeb, 0xdc, 0x03
#define SIZE(size)   0x80 | (size), 0x80, 0x00
#define SECTION_HEAD 1, 1, NO_M, TIME_1000

#define TINY_RECORDS                                                                               \
    1, 1, 5, 0x94, 0x0a, SIZE(14), /* M 5 at 1300 = 10 * 128 + 0x14 */                             \
        13, 0, 0, 1,               /* ProcStatus dt p pstatus */                                   \
        25, 5, 1, 5, 2,            /* GoStatus dt g m gstatus */                                   \
        19, 0xa7, 0x02, 1, 1,      /* GoStop dt=295 = 2 * 128 + 0x27, reason, stack */             \
        SECTION_HEAD, SIZE(15), 4, /* Strings */                                                   \
        5, 1, 1, 'x',              /* String id size */                                            \
        5, 2, 1, 'f', 5, 3, 3, 'a', '.', 'c', SECTION_HEAD, SIZE(9), 2, /* Stacks */               \
        3, 1, 1, 0xb4, 0x24, 2, 3, 7 /* Stack id n, pc 0x1234 = 0x24 * 128 + 0x34, f, a.c, 7 */

/* clang-format off */
static const uint8_t tiny_22[] = {
    'g', 'o', ' ', '1', '.', '2', '2', ' ', 't', 'r', 'a', 'c', 'e', 0, 0, 0,
    SECTION_HEAD, SIZE(6),
        8, A_BILLION, /* Frequency */
    TINY_RECORDS,
};

static const uint8_t tiny_26[] = {
    'g', 'o', ' ', '1', '.', '2', '6', ' ', 't', 'r', 'a', 'c', 'e', 0, 0, 0,
    SECTION_HEAD, SIZE(18),
        50, /* Sync */
        8, A_BILLION, /* Frequency */
        51, 0, TIME_1000, /* ClockSnapshot dt mono, */
            0x80, 0xde, 0xa0, 0xcb, 0x05, 0xac, 0x02, /* 1,500,000,000 s, 300 ns */
    TINY_RECORDS,
    52, /* EndOfGeneration */
};
/* clang-format on */

static void write_tiny(int version, struct file *file)
{
    struct v2_writer *w = open_writer(version, file);
    assert_true(v2_writer_begin(w, 1000, INT64_C(1500000000000000300)));
    assert_true(v2_writer_event(w, 5, 1300, V2_ProcStatus, V2_ARGS(0, V2_PROC_RUNNING)));
    assert_true(v2_writer_event(w, 5, 1305, V2_GoStatus, V2_ARGS(1, 5, V2_GO_RUNNING)));
    uint64_t reason = v2_writer_string(w, text_of("x"));
    struct v2_frame frame = {0x1234, text_of("f"), text_of("a.c"), 7};
    assert_true(
        v2_writer_event(w, 5, 1600, V2_GoStop, V2_ARGS(reason, v2_writer_stack(w, &frame, 1))));
    assert_true(v2_writer_end(w));
    close_writer(w);
}

TEST(the_bytes_are_those_of_the_format)
{
    struct file file = {0};
    write_tiny(22, &file);
    assert_int_equal(file.size, sizeof tiny_22);
    assert_memory_equal(file.data, tiny_22, sizeof tiny_22);
    file_clear(&file);
    write_tiny(26, &file);
    assert_int_equal(file.size, sizeof tiny_26);
    assert_memory_equal(file.data, tiny_26, sizeof tiny_26);
    file_clear(&file);
}

/* MARK: A program: Ms with a P each run goroutines; what they write is logged */

#define MACHINES    3
#define GOROUTINES  40
#define GENERATIONS 4
#define STEPS       400

/* An expected event: its time, thread, type and meaning. */
struct entry {
    int64_t time_ns, thread;
    unsigned type, frames; /* frames: number of the stack, see stack_of; 0: none */
    int64_t id;            /* of the goroutine or P; TRAIL_NONE: neither */
    char text[24];
};

struct goroutine {
    uint64_t seq;
    enum { NONE, RUNNABLE, RUNNING, WAITING } state;
};

struct program {
    struct v2_writer *w;
    uint64_t random;
    int64_t now_ns;
    struct goroutine g[GOROUTINES + 1];
    uint64_t running[MACHINES]; /* goroutine, 0: none */
    struct entry *log;
    size_t entries;
};

#define MOST_ENTRIES ((size_t)GENERATIONS * (STEPS + GOROUTINES + 2 * MACHINES))

static unsigned random_below(struct program *p, unsigned n)
{
    p->random = p->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(p->random >> 33) % n;
}

/* Returns frame `i` of stack `n`, which has `n` frames. */
static struct v2_frame frame_of(unsigned n, unsigned i)
{
    static char function[64], file[64];
    (void)snprintf(function, sizeof function, "pkg.f%u.%u", n, i);
    (void)snprintf(file, sizeof file, "/src/f%u.go", n);
    return (struct v2_frame){0x10000 * n + i, text_of(function), text_of(file), n * 10 + i};
}

static uint64_t stack_of(struct program *p, unsigned n)
{
    static char names[130][2][64];
    struct v2_frame frames[130];
    for (unsigned i = 0; i < n; i++) {
        frames[i] = frame_of(n, i);
        (void)snprintf(names[i][0], sizeof names[i][0], "%s", frames[i].function.data);
        (void)snprintf(names[i][1], sizeof names[i][1], "%s", frames[i].file.data);
        frames[i].function.data = names[i][0];
        frames[i].file.data = names[i][1];
    }
    return v2_writer_stack(p->w, frames, n);
}

static uint64_t string_of(struct program *p, const char *text)
{
    return v2_writer_string(p->w, text_of(text));
}

/* Adds the next event to the log of expected ones. */
static void expect_event(struct program *p, uint64_t m, unsigned type, int64_t id, unsigned frames,
                         const char *text)
{
    p->now_ns += 1 + random_below(p, 300);
    struct entry *entry = &p->log[p->entries++];
    assert_true(p->entries <= MOST_ENTRIES);
    *entry = (struct entry){p->now_ns, (int64_t)m, type, frames, id, ""};
    (void)snprintf(entry->text, sizeof entry->text, "%s", text);
}

static uint64_t pick(struct program *p, int state)
{
    uint64_t first = 1 + random_below(p, GOROUTINES);
    for (uint64_t i = 0; i < GOROUTINES; i++) {
        uint64_t g = 1 + (first + i) % GOROUTINES;
        if ((int)p->g[g].state == state)
            return g;
    }
    return 0;
}

static void statuses(struct program *p, int version)
{
    for (uint64_t g = 1; g <= GOROUTINES; g++) {
        p->g[g].seq = 0;
        if (p->g[g].state != WAITING && p->g[g].state != RUNNABLE)
            continue;
        uint64_t status = p->g[g].state == WAITING ? V2_GO_WAITING : V2_GO_RUNNABLE;
        if (version >= 23) {
            expect_event(p, V2_NO_THREAD, V2_GoStatusStack, (int64_t)g, 3, "");
            v2_writer_event(p->w, V2_NO_THREAD, p->now_ns, V2_GoStatusStack,
                            V2_ARGS(g, V2_NO_THREAD, status, stack_of(p, 3)));
        } else {
            expect_event(p, V2_NO_THREAD, V2_GoStatus, (int64_t)g, 0, "");
            v2_writer_event(p->w, V2_NO_THREAD, p->now_ns, V2_GoStatus,
                            V2_ARGS(g, V2_NO_THREAD, status));
        }
    }
    for (uint64_t i = 0; i < MACHINES; i++) {
        expect_event(p, 100 + i, V2_ProcStatus, (int64_t)i, 0, "");
        v2_writer_event(p->w, 100 + i, p->now_ns, V2_ProcStatus, V2_ARGS(i, V2_PROC_RUNNING));
        if (!p->running[i])
            continue;
        expect_event(p, 100 + i, V2_GoStatus, (int64_t)p->running[i], 0, "");
        v2_writer_event(p->w, 100 + i, p->now_ns, V2_GoStatus,
                        V2_ARGS(p->running[i], 100 + i, V2_GO_RUNNING));
    }
}

/* Makes goroutine `g`, which runs on machine `i`, do something. */
static void act(struct program *p, uint64_t i, uint64_t g)
{
    static const char *const reasons[] = {"chan receive", "select", "sync"};
    unsigned frames = 1 + random_below(p, 9);
    uint64_t m = 100 + i, other;
    const char *reason = reasons[random_below(p, 3)];
    switch (random_below(p, 6)) {
    case 0:
        other = pick(p, NONE);
        if (!other)
            break;
        p->g[other] = (struct goroutine){0, RUNNABLE};
        expect_event(p, m, V2_GoCreate, (int64_t)other, frames, "");
        v2_writer_event(p->w, m, p->now_ns, V2_GoCreate,
                        V2_ARGS(other, stack_of(p, 1), stack_of(p, frames)));
        break;
    case 1:
        p->g[g].state = WAITING;
        p->running[i] = 0;
        expect_event(p, m, V2_GoBlock, (int64_t)g, frames, reason);
        v2_writer_event(p->w, m, p->now_ns, V2_GoBlock,
                        V2_ARGS(string_of(p, reason), stack_of(p, frames)));
        break;
    case 2:
        p->g[g].state = RUNNABLE;
        p->running[i] = 0;
        expect_event(p, m, V2_GoStop, (int64_t)g, 0, "preempted");
        v2_writer_event(p->w, m, p->now_ns, V2_GoStop, V2_ARGS(string_of(p, "preempted"), 0));
        break;
    case 3:
        other = pick(p, WAITING);
        if (!other)
            break;
        p->g[other].state = RUNNABLE;
        expect_event(p, m, V2_GoUnblock, (int64_t)other, frames, "");
        v2_writer_event(p->w, m, p->now_ns, V2_GoUnblock,
                        V2_ARGS(other, ++p->g[other].seq, stack_of(p, frames)));
        break;
    case 4:
        expect_event(p, m, V2_UserLog, TRAIL_NONE, frames, reason);
        v2_writer_event(p->w, m, p->now_ns, V2_UserLog,
                        V2_ARGS(0, string_of(p, "key"), string_of(p, reason), stack_of(p, frames)));
        break;
    default:
        p->now_ns++;
        expect_event(p, m, V2_CPUSample, TRAIL_NONE, frames, "");
        v2_writer_sample(p->w, p->now_ns, m, i, g, stack_of(p, frames));
        break;
    }
}

static void step(struct program *p)
{
    uint64_t i = random_below(p, MACHINES), m = 100 + i, g = p->running[i];
    if (g) {
        act(p, i, g);
        return;
    }
    g = pick(p, RUNNABLE);
    if (!g)
        return;
    p->g[g].state = RUNNING;
    p->running[i] = g;
    expect_event(p, m, V2_GoStart, (int64_t)g, 0, "");
    v2_writer_event(p->w, m, p->now_ns, V2_GoStart, V2_ARGS(g, ++p->g[g].seq));
}

/* Runs the program into `file`; returns the result of v2_writer_close. */
static bool run_program(struct program *p, int version, struct file *file, trail_error *err)
{
    struct entry *log = p->log;
    *p = (struct program){.random = 7, .now_ns = INT64_C(1000000000000), .log = log};
    p->running[0] = 1;
    p->g[1].state = RUNNING;
    p->w = v2_writer_open(version, &(trail_sink){file_write, file}, err);
    if (!p->w)
        return false;
    for (uint64_t generation = 1; generation <= GENERATIONS; generation++) {
        v2_writer_begin(p->w, p->now_ns, INT64_C(1750000000000000000) + p->now_ns);
        statuses(p, version);
        for (int i = 0; i < STEPS; i++)
            step(p);
        v2_writer_note(p->w, text_of("nothing refers to this"));
        v2_writer_end(p->w);
        if (!v2_writer_failed(p->w))
            assert_int_equal(v2_writer_generation(p->w), generation);
    }
    return v2_writer_close(p->w, err);
}

/* MARK: Reading back */

static void same_text(const trail_reader *reader, trail_string_handle handle, const char *text)
{
    trail_string read = trail_reader_string(reader, handle);
    assert_int_equal(read.size, strlen(text));
    assert_memory_equal(read.data, text, read.size);
}

static void same_stack(const trail_reader *reader, trail_stack_handle handle, unsigned n)
{
    size_t count;
    const trail_frame *frames = trail_reader_stack(reader, handle, &count);
    assert_int_equal(count, n);
    for (unsigned i = 0; i < n; i++) {
        struct v2_frame frame = frame_of(n, i);
        assert_int_equal(frames[i].pc, frame.pc);
        assert_int_equal(frames[i].line, frame.line);
        same_text(reader, frames[i].function, frame.function.data);
        same_text(reader, frames[i].file, frame.file.data);
    }
}

static void same_event(const trail_reader *reader, const trail_event *event,
                       const struct entry *entry)
{
    assert_int_equal(event->wire, entry->type);
    assert_int_equal(event->time_ns, entry->time_ns);
    assert_int_equal(event->thread, entry->thread);
    trail_stack_handle stack = event->stack;
    if (event->kind == TRAIL_STATE_TRANSITION) {
        assert_int_equal(event->transition.id, entry->id);
        same_text(reader, event->transition.reason, entry->text);
        if (entry->type == V2_GoStatusStack)
            stack = event->transition.stack;
        if (entry->type == V2_GoCreate)
            same_stack(reader, event->transition.stack, 1);
    } else if (event->kind == TRAIL_LOG) {
        same_text(reader, event->log.category, "key");
        same_text(reader, event->log.message, entry->text);
    } else {
        assert_int_equal(event->kind, TRAIL_STACK_SAMPLE);
    }
    same_stack(reader, stack, entry->frames);
}

/* The events in `file` must be those of the log, to its end or, if `part`, as far as they go. */
static size_t read_back(const struct file *file, const struct program *p, bool part)
{
    trail_error err;
    trail_source *source = trail_source_open_memory(file->data, file->size, &err);
    trail_reader *reader = trail_reader_open(source, NULL, &err);
    const trail_event *event;
    size_t read = 0;
    int more;
    assert_non_null(reader);
    while ((more = trail_reader_next(reader, &event)) > 0) {
        if (event->kind == TRAIL_SYNC)
            continue;
        assert_true(read < p->entries);
        same_event(reader, event, &p->log[read++]);
    }
    if (more < 0)
        fail_msg("reading: %s", trail_reader_error(reader)->message);
    if (!part)
        assert_int_equal(read, p->entries);
    trail_reader_close(reader);
    trail_source_close(source);
    return read;
}

static struct entry the_log[MOST_ENTRIES];

TEST(what_was_written_is_read)
{
    for (size_t i = 0; i < VERSIONS; i++) {
        struct program p = {.log = the_log};
        struct file file = {0};
        trail_error err;
        if (!run_program(&p, versions[i], &file, &err))
            fail_msg("writing: %s", err.message);
        assert_true(p.entries > 1000);
        read_back(&file, &p, false);
        file_clear(&file);
    }
}

/* The clock snapshot of a trace with one generation must be `expected`. */
static void same_clocks(const struct file *file, const trail_clock_snapshot *expected)
{
    trail_source *source = trail_source_open_memory(file->data, file->size, NULL);
    trail_reader *reader = trail_reader_open(source, NULL, NULL);
    const trail_event *event;
    assert_int_equal(trail_reader_next(reader, &event), 1);
    assert_int_equal(event->kind, TRAIL_SYNC);
    assert_non_null(event->sync.snapshot);
    assert_int_equal(event->sync.snapshot->trace_ns, expected->trace_ns);
    assert_int_equal(event->sync.snapshot->mono_ns, expected->mono_ns);
    assert_int_equal(event->sync.snapshot->wall_s, expected->wall_s);
    assert_int_equal(event->sync.snapshot->wall_ns, expected->wall_ns);
    trail_reader_close(reader);
    trail_source_close(source);
}

TEST(clocks_are_read)
{
    for (size_t i = 2; i < VERSIONS; i++) {
        struct file file = {0};
        const trail_clock_snapshot written = {123456789, 987654321, 1750000000, 999999999};
        struct v2_writer *w = open_writer(versions[i], &file);
        assert_true(v2_writer_begin_at(w, &written));
        close_writer(w);
        same_clocks(&file, &written);
        file_clear(&file);
    }
}

TEST(a_clock_before_1970_counts_seconds_down_and_nanoseconds_up)
{
    struct file file = {0};
    struct v2_writer *w = open_writer(26, &file);
    assert_true(v2_writer_begin(w, 77, -1));
    close_writer(w);
    same_clocks(&file, &(trail_clock_snapshot){77, 77, -1, 999999999});
    file_clear(&file);
}

/* MARK: Go's tools */

/* Writes the path of that release's go command; false if it is not installed. */
static bool find_go(const char *release, char *path, size_t size)
{
    const char *more = getenv("TRAIL_GO");
    char folders[2000];
    (void)snprintf(folders, sizeof folders, "%s:/usr/lib", more ? more : "");
    for (char *save, *folder = strtok_r(folders, ":", &save); folder;
         folder = strtok_r(NULL, ":", &save)) {
        (void)snprintf(path, size, "%s/go-%s/bin/go", folder, release);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

static const struct {
    const char *release, *mode;
    int versions[VERSIONS];
} go_readers[] = {
    {"1.22", "1", {22}},
    {"1.23", "1", {22, 23}},
    {"1.26", "parsed", {22, 23, 25, 26}},
    {"1.27", "parsed", {22, 23, 25, 26}},
};

static bool has_go(void)
{
    char go[2100];
    for (size_t i = 0; i < sizeof go_readers / sizeof *go_readers; i++)
        if (find_go(go_readers[i].release, go, sizeof go))
            return true;
    return false;
}

/* Returns how many events Go shows, without Sync; -1 if it rejects the trace. */
static long go_events(const char *go, const char *mode, const struct file *file)
{
    char path[] = "/tmp/trail-v2-writer-XXXXXX", command[2200], line[4096];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, file->data, file->size), file->size);
    close(fd);
    (void)snprintf(command, sizeof command, "'%s' tool trace -d=%s %s", go, mode, path);
    FILE *output = popen(command, "r");
    long events = 0;
    assert_non_null(output);
    while (fgets(line, sizeof line, output))
        events += strncmp(line, "M=", 2) == 0 && !strstr(line, " Sync Time=");
    int status = pclose(output);
    (void)unlink(path);
    return status == 0 ? events : -1;
}

static void go_reads_what_was_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof go_readers / sizeof *go_readers; i++) {
        char go[2100];
        if (!find_go(go_readers[i].release, go, sizeof go)) {
            print_message("# Go %s is not installed\n", go_readers[i].release);
            continue;
        }
        for (const int *version = go_readers[i].versions;
             version < go_readers[i].versions + VERSIONS && *version; version++) {
            struct program p = {.log = the_log};
            struct file file = {0};
            trail_error err;
            assert_true(run_program(&p, *version, &file, &err));
            assert_int_equal(go_events(go, go_readers[i].mode, &file), p.entries);
            file_clear(&file);
        }
    }
}

/* MARK: Limits */

/* Checks that readers accept all batches of a trace. Returns how many have events. */
static size_t event_batches(const struct file *file, uint64_t *largest)
{
    trail_error err;
    trail_source *source = trail_source_open_memory(file->data, file->size, &err);
    trail_walk *walk = trail_walk_open(source, &err);
    trail_batch batch;
    size_t count = 0;
    int more;
    *largest = 0;
    assert_non_null(walk);
    while ((more = trail_walk_next(walk, &batch)) > 0) {
        uint64_t size = batch.header_size + batch.size;
        assert_true(size <= V2_MAX_BATCH_DATA);
        count += batch.kind == TRAIL_BATCH_EVENTS;
        *largest = size > *largest ? size : *largest;
    }
    assert_int_equal(more, 0);
    trail_walk_close(walk);
    trail_source_close(source);
    return count;
}

TEST(a_batch_is_filled_while_any_event_fits)
{
    /*
     * The header is 01, 1, 5, two bytes of time, three of size: 8 bytes. HeapAlloc takes 3, STWEnd
     * 2: 21,825 and 1 of them leave 65,536 - 8 - 65,475 - 2 = 51, the largest size of an event. One
     * more STWEnd leaves 49.
     */
    for (unsigned more = 1; more <= 2; more++) {
        struct file file = {0};
        uint64_t largest;
        struct v2_writer *w = open_writer(22, &file);
        v2_writer_begin(w, 1000, 0);
        for (unsigned i = 0; i < 21825; i++)
            v2_writer_event(w, 5, 1000, V2_HeapAlloc, V2_ARGS(1));
        for (unsigned i = 0; i < more; i++)
            v2_writer_event(w, 5, 1000, V2_STWEnd, 0, NULL);
        /* 1 + 1 + 3 * 10 bytes */
        assert_true(
            v2_writer_event(w, 5, 1001, V2_GoStatus, V2_ARGS(UINT64_MAX, UINT64_MAX, UINT64_MAX)));
        assert_true(v2_writer_end(w));
        assert_int_equal(v2_writer_bytes(w), file.size);
        close_writer(w);
        assert_int_equal(event_batches(&file, &largest), more);
        assert_int_equal(largest, more == 1 ? 65536 - 51 + 32 : 65536 - 49);
        file_clear(&file);
    }
}

TEST(many_threads_take_little_memory_and_their_events_come_back)
{
    enum { THREADS = 10000, EVENTS = 200, BEGIN_NS = 1000 };
    struct file file = {0};
    long before = heap.used;
    heap.most = heap.used;
    struct v2_writer *w = open_writer(26, &file);
    v2_writer_begin(w, BEGIN_NS, 0);
    for (unsigned i = 0; i < EVENTS; i++)
        for (unsigned m = 0; m < THREADS; m++) {
            int64_t now_ns = BEGIN_NS + (int64_t)i * THREADS + m + 1;
            if (i == 0)
                v2_writer_event(w, m, now_ns, V2_ProcStatus, V2_ARGS(m, V2_PROC_RUNNING));
            else
                v2_writer_event(w, m, now_ns, V2_HeapAlloc, V2_ARGS(UINT64_MAX - (uint64_t)now_ns));
        }
    assert_true(v2_writer_end(w));
    assert_int_equal(v2_writer_bytes(w), file.size);
    long most = heap.most - before;
    close_writer(w);
    /* 26 MB were written, of which at most 16 MiB are open; a thread costs about a hundred
     * bytes. */
    assert_true(file.size > 25000000);
    assert_true(most < 20000000);
    assert_int_equal(heap.used, before);

    trail_source *source = trail_source_open_memory(file.data, file.size, NULL);
    trail_reader *reader = trail_reader_open(source, NULL, NULL);
    const trail_event *event;
    int64_t read = 0;
    while (trail_reader_next(reader, &event) > 0) {
        if (event->kind == TRAIL_SYNC)
            continue;
        assert_int_equal(event->time_ns, BEGIN_NS + read + 1);
        assert_int_equal(event->thread, read % THREADS);
        if (event->kind == TRAIL_METRIC)
            assert_int_equal(event->metric.value, UINT64_MAX - (uint64_t)event->time_ns);
        read++;
    }
    assert_int_equal(read, THREADS * EVENTS);
    trail_reader_close(reader);
    trail_source_close(source);
    file_clear(&file);
}

TEST(memory_given_back_serves_again)
{
    struct file file = {0};
    uint64_t largest;
    struct v2_writer *w = open_writer(26, &file);
    /* 40,000 minimum-size batches are more than may be open. */
    for (int generation = 1; generation <= 3; generation++) {
        v2_writer_begin(w, 1, 1);
        for (uint64_t m = 0; m < 40000; m++)
            v2_writer_event(w, m, 1, V2_HeapAlloc, V2_ARGS(1));
        v2_writer_end(w);
    }
    assert_int_equal(event_batches(&file, &largest), 3 * 40000);
    assert_true(largest < 100);
    v2_writer_begin(w, 2, 2);
    for (int i = 0; i < 40000; i++)
        v2_writer_event(w, 7, 2, V2_HeapAlloc, V2_ARGS(1)); /* 3 bytes */
    close_writer(w);
    assert_int_equal(event_batches(&file, &largest), 3 * 40000 + 2);
    assert_true(largest > V2_MAX_BATCH_DATA - 55);
    file_clear(&file);
}

TEST(an_empty_generation_is_a_generation)
{
    for (size_t i = 0; i < VERSIONS; i++) {
        struct program p = {.log = the_log};
        struct file file = {0};
        trail_reader_stats stats;
        const trail_event *event;
        struct v2_writer *w = open_writer(versions[i], &file);
        for (int generation = 1; generation <= 3; generation++) {
            assert_true(v2_writer_begin(w, INT64_C(1000) * generation, 0));
            assert_true(v2_writer_end(w));
        }
        assert_int_equal(v2_writer_bytes(w), file.size);
        close_writer(w);
        assert_int_equal(read_back(&file, &p, false), 0);
        trail_source *source = trail_source_open_memory(file.data, file.size, NULL);
        trail_reader *reader = trail_reader_open(source, NULL, NULL);
        while (trail_reader_next(reader, &event) > 0)
            ;
        trail_reader_get_stats(reader, &stats);
        assert_int_equal(stats.generations, 3);
        trail_reader_close(reader);
        trail_source_close(source);
        file_clear(&file);
    }
}

/* Finds the generation's record with that ID: a String, or a Stack. */
static bool find_record(const struct file *file, unsigned type, uint64_t id,
                        void (*look)(const trail_record *record, const void *arg), const void *arg)
{
    trail_source *source = trail_source_open_memory(file->data, file->size, NULL);
    trail_records *records = trail_records_open(source, NULL);
    const trail_record *record;
    unsigned found = 0;
    assert_non_null(records);
    while (trail_records_next(records, &record) > 0) {
        if (record->type != type || record->arg[0] != id)
            continue;
        found++;
        look(record, arg);
    }
    assert_null(trail_records_error(records) && trail_records_error(records)->code
                    ? trail_records_error(records)->message
                    : NULL);
    trail_records_close(records);
    trail_source_close(source);
    assert_true(found <= 1);
    return found == 1;
}

static void look_text(const trail_record *record, const void *arg)
{
    const trail_string *text = arg;
    assert_int_equal(record->data.size, text->size);
    assert_memory_equal(record->data.data, text->data, text->size);
}

static void look_names(const trail_record *record, const void *arg)
{
    const uint64_t *names = arg;
    assert_int_equal(record->frames, 1);
    assert_int_equal(record->frame[1], names[0]);
    assert_int_equal(record->frame[2], names[1]);
}

TEST(texts_are_cut_where_readers_take_no_more)
{
    static char text[70000], late[1025], file_name[1025];
    struct file file = {0};
    struct v2_writer *w = open_writer(23, &file);
    memset(text, 'a', sizeof text);
    /* NOLINTBEGIN(bugprone-not-null-terminated-result): bytes with a size, no strings. */
    memcpy(late, text, sizeof late);
    memcpy(file_name, text, sizeof file_name);
    memcpy(late + 1022, "\xe2\x82\xac", 3); /* the last character is cut in the middle */
    v2_writer_begin(w, 1, 1);
    assert_int_equal(v2_writer_string(w, (trail_string){NULL, 0}), 0);
    assert_int_equal(v2_writer_string(w, (trail_string){text, 1024}), 1);
    assert_int_equal(v2_writer_string(w, (trail_string){text, 1023}), 2);
    assert_int_equal(v2_writer_string(w, (trail_string){text, 1025}), 1);
    assert_int_equal(v2_writer_string(w, (trail_string){text, 70000}), 1);
    assert_int_equal(v2_writer_string(w, (trail_string){late, 1025}), 3);
    /* Names lose their beginning: the function's name a complete character, the file's only a
     * byte. */
    memcpy(text, "\xe2\x82\xac", 3);
    memcpy(file_name, "/b", 2);
    /* NOLINTEND(bugprone-not-null-terminated-result) */
    struct v2_frame frame = {9, {text, 1025}, {file_name, 1025}, 1};
    assert_int_equal(v2_writer_stack(w, &frame, 1), 1);
    close_writer(w);
    trail_string expected = {file_name + 1, 1024};
    assert_true(find_record(&file, V2_String, 4, look_text, &expected));
    assert_false(find_record(&file, V2_String, 5, look_text, &expected));
    memset(text, 'a', 3);
    expected.data = text;
    assert_true(find_record(&file, V2_String, 1, look_text, &expected));
    expected.size = 1022;
    assert_true(find_record(&file, V2_String, 3, look_text, &expected));
    assert_true(find_record(&file, V2_Stack, 1, look_names, (const uint64_t[]){3, 4}));
    file_clear(&file);
}

static void look_frames(const trail_record *record, const void *arg)
{
    const unsigned *frames = arg;
    assert_int_equal(record->frames, *frames);
    for (unsigned i = 0; i < record->frames; i++) {
        assert_int_equal(record->frame[(size_t)4 * i], 1000 + i);
        assert_int_equal(record->frame[(size_t)4 * i + 3], i);
    }
}

TEST(stacks_are_one_if_their_frames_are)
{
    struct v2_frame frames[500];
    struct file file = {0};
    struct v2_writer *w = open_writer(23, &file);
    for (unsigned i = 0; i < 500; i++)
        frames[i] = (struct v2_frame){1000 + i, text_of("f"), text_of("g"), i};
    v2_writer_begin(w, 1, 1);
    assert_int_equal(v2_writer_stack(w, frames, 0), 0);
    assert_int_equal(v2_writer_stack(w, frames, 128), 1);
    assert_int_equal(v2_writer_stack(w, frames, 127), 2);
    assert_int_equal(v2_writer_stack(w, frames, 128), 1);
    assert_int_equal(v2_writer_stack(w, frames, 500), 1); /* the innermost 128 */
    struct v2_frame other = frames[0];
    assert_int_equal(v2_writer_stack(w, &frames[0], 1), 3);
    other.function = text_of("h"); /* of the same PC */
    assert_int_equal(v2_writer_stack(w, &other, 1), 4);
    other = frames[0];
    other.line++;
    assert_int_equal(v2_writer_stack(w, &other, 1), 5);
    close_writer(w);
    assert_true(find_record(&file, V2_Stack, 1, look_frames, &(unsigned){128}));
    assert_true(find_record(&file, V2_Stack, 2, look_frames, &(unsigned){127}));
    assert_true(find_record(&file, V2_Stack, 3, look_frames, &(unsigned){1}));
    file_clear(&file);
}

TEST(ids_are_of_their_generation)
{
    struct file file = {0};
    struct v2_writer *w = open_writer(23, &file);
    assert_int_equal(v2_writer_generation(w), 0);
    v2_writer_begin(w, 1, 1);
    assert_int_equal(v2_writer_string(w, text_of("one")), 1);
    assert_int_equal(v2_writer_string(w, text_of("two")), 2);
    v2_writer_end(w);
    v2_writer_begin(w, 2, 2);
    assert_int_equal(v2_writer_generation(w), 2);
    assert_int_equal(v2_writer_string(w, text_of("two")), 1);
    v2_writer_end(w);
    close_writer(w);
    file_clear(&file);
}

TEST(times_are_kept_after_a_hundred_days)
{
    /* From 2^53 ns on, a float64 skips numbers; the largest time is 2^63 - 1. */
    const int64_t begins[] = {(INT64_C(1) << 53) - 3, (INT64_C(1) << 53) + 1,
                              (INT64_C(1) << 56) + 12345, INT64_C(9000000000000000001)};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        struct file file = {0};
        struct v2_writer *w = open_writer(26, &file);
        v2_writer_begin(w, begins[i], 1);
        v2_writer_event(w, 1, begins[i] + 1, V2_ProcStatus, V2_ARGS(0, V2_PROC_RUNNING));
        for (int64_t n = 1; n < 100000; n++)
            v2_writer_event(w, 1, begins[i] + 1 + n, V2_HeapAlloc, V2_ARGS(1));
        close_writer(w);
        trail_source *source = trail_source_open_memory(file.data, file.size, NULL);
        trail_reader *reader = trail_reader_open(source, NULL, NULL);
        const trail_event *event;
        int64_t read = 0;
        while (trail_reader_next(reader, &event) > 0)
            if (event->kind != TRAIL_SYNC)
                assert_int_equal(event->time_ns, begins[i] + ++read);
        assert_int_equal(read, 100000);
        trail_reader_close(reader);
        trail_source_close(source);
        file_clear(&file);
    }
}

/* MARK: Failure */

static void misuse(int version, const char *message, bool (*wrong)(struct v2_writer *w))
{
    struct program p = {.log = the_log};
    struct file file = {0};
    trail_error err;
    struct v2_writer *w = open_writer(version, &file);
    v2_writer_begin(w, 1000, 0);
    v2_writer_event(w, 5, 2000, V2_ProcStatus, V2_ARGS(0, V2_PROC_RUNNING));
    assert_false(wrong(w));
    assert_true(v2_writer_failed(w));
    assert_false(v2_writer_event(w, 5, 3000, V2_HeapAlloc, V2_ARGS(1)));
    assert_int_equal(v2_writer_string(w, text_of("late")), 0);
    assert_false(v2_writer_end(w));
    assert_false(v2_writer_begin(w, 4000, 0));
    assert_false(v2_writer_close(w, &err));
    assert_int_equal(err.code, TRAIL_USAGE);
    if (!strstr(err.message, message))
        fail_msg("expected \"%s\", got \"%s\"", message, err.message);
    /* Everything before the failure is a valid trace. */
    p.log[0] = (struct entry){2000, 5, V2_ProcStatus, 0, 0, ""};
    p.entries = 1;
    read_back(&file, &p, false);
    file_clear(&file);
}

static bool earlier(struct v2_writer *w)
{
    return v2_writer_event(w, 5, 1999, V2_HeapAlloc, V2_ARGS(1));
}

static bool nested(struct v2_writer *w)
{
    return v2_writer_begin(w, 3000, 0);
}

static bool negative(struct v2_writer *w)
{
    return v2_writer_event(w, 6, -1, V2_HeapAlloc, V2_ARGS(1));
}

static bool too_few(struct v2_writer *w)
{
    return v2_writer_event(w, 5, 3000, V2_GoStart, V2_ARGS(1));
}

static bool too_new(struct v2_writer *w)
{
    return v2_writer_event(w, 5, 3000, V2_GoSwitch, V2_ARGS(1, 1));
}

static bool structural(struct v2_writer *w)
{
    return v2_writer_event(w, 5, 3000, V2_Strings, 0, NULL);
}

static bool no_type(struct v2_writer *w)
{
    return v2_writer_event(w, 5, 3000, 5000, 0, NULL);
}

static bool unknown_string(struct v2_writer *w)
{
    uint64_t stack = v2_writer_stack(w, &(struct v2_frame){.pc = 1}, 1);
    return v2_writer_event(w, 5, 3000, V2_GoBlock, V2_ARGS(1, stack));
}

static bool unknown_stack(struct v2_writer *w)
{
    uint64_t text = v2_writer_string(w, text_of("x"));
    return v2_writer_event(w, 5, 3000, V2_GoBlock, V2_ARGS(text, 1));
}

static bool unknown_new_stack(struct v2_writer *w)
{
    return v2_writer_event(w, 5, 3000, V2_GoCreate, V2_ARGS(1, 1, 0));
}

static bool unknown_stack_of_a_sample(struct v2_writer *w)
{
    return v2_writer_sample(w, 3000, 1, 1, 1, 1);
}

static bool alloc_free(struct v2_writer *w)
{
    return v2_writer_event(w, 5, 3000, V2_HeapObjectAlloc, V2_ARGS(1, 2));
}

static bool early_sample(struct v2_writer *w)
{
    return v2_writer_sample(w, -1, 1, 1, 1, 0);
}

TEST(misuse_is_refused_and_what_came_before_is_a_trace)
{
    for (size_t i = 0; i < VERSIONS; i++) {
        misuse(versions[i], "backwards in a thread, from 2000 to 1999", earlier);
        misuse(versions[i], "before the previous one has ended", nested);
        misuse(versions[i], "backwards", negative);
        misuse(versions[i], "GoStart has 2 arguments, not 1", too_few);
        misuse(versions[i], "not an event of format", structural);
        misuse(versions[i], "not an event of format", no_type);
        misuse(versions[i], "has the time -1 ns", early_sample);
        misuse(versions[i], "GoBlock refers to a string or stack of no table", unknown_string);
        misuse(versions[i], "GoBlock refers to a string or stack of no table", unknown_stack);
        misuse(versions[i], "GoCreate refers to", unknown_new_stack);
        misuse(versions[i], "sample refers to a stack of no table", unknown_stack_of_a_sample);
    }
    misuse(22, "type 45 is not an event of format 1.22", too_new);
}

TEST(records_need_a_generation)
{
    struct file file = {0};
    trail_error err;
    struct v2_writer *w = open_writer(22, &file);
    assert_false(v2_writer_event(w, 5, 3000, V2_HeapAlloc, V2_ARGS(1)));
    assert_false(v2_writer_close(w, &err));
    assert_int_equal(err.code, TRAIL_USAGE);
    assert_int_equal(file.size, WIRE_HEADER_SIZE);
    file_clear(&file);
    w = open_writer(22, &file);
    assert_false(v2_writer_end(w));
    assert_false(v2_writer_close(w, &err));
    assert_int_equal(err.code, TRAIL_USAGE);
    file_clear(&file);
}

TEST(experimental_events_are_of_1_23_and_later)
{
    misuse(22, "not an event of format", alloc_free);
    struct file file = {0};
    struct v2_writer *w = open_writer(23, &file);
    v2_writer_begin(w, 1, 1);
    assert_true(alloc_free(w));
    close_writer(w);
    file_clear(&file);
}

TEST(other_versions_are_refused)
{
    static const int others[] = {0, 5, 21, 24, 27, -22};
    struct file file = {0};
    trail_error err;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_null(v2_writer_open(others[i], &(trail_sink){file_write, &file}, &err));
        assert_int_equal(err.code, TRAIL_UNSUPPORTED);
    }
    assert_int_equal(file.size, 0);
}

/* 1.22 has no event for what the merge's helper creates. */
TEST(a_merge_is_written_in_the_versions_that_have_its_events)
{
    for (int version = -1; version < 30; version++) {
        trail_error err = {0};
        trail_merge_options options = {.version = version};
        trail_merge *merge = trail_merge_open(&options, &err);
        bool wanted = version == 0 || version == 23 || version == 25 || version == 26;
        assert_int_equal(merge != NULL, wanted);
        assert_int_equal(err.code, wanted ? TRAIL_OK : TRAIL_USAGE);
        trail_merge_close(merge);
    }
}

TEST(a_sink_that_fails_is_told_and_left_alone)
{
    struct program p = {.log = the_log};
    struct file whole = {0};
    trail_error err;
    assert_true(run_program(&p, 26, &whole, &err));
    assert_true(whole.writes >= GENERATIONS);
    for (long n = 1; n <= whole.writes; n++) {
        struct file file = {.fail_at = n};
        err.code = TRAIL_OK;
        assert_false(run_program(&p, 26, &file, &err));
        assert_int_equal(err.code, TRAIL_IO);
        assert_non_null(strstr(err.message, strerror(ENOSPC)));
        assert_int_equal(file.writes, n);
        assert_true(file.size < whole.size);
        if (file.size > 0)
            assert_memory_equal(file.data, whole.data, file.size);
        file_clear(&file);
    }
    file_clear(&whole);
}

TEST(without_memory_what_came_before_is_a_trace)
{
    for (size_t i = 0; i < VERSIONS; i++) {
        bool done = false;
        size_t longest = 0;
        for (long n = 0; !done; n++) {
            struct program p = {.log = the_log};
            struct file file = {0};
            trail_error err = {0};
            long used = heap.used;
            heap.left = n;
            done = run_program(&p, versions[i], &file, &err);
            heap.left = -1;
            assert_int_equal(heap.used, used);
            if (!done)
                assert_int_equal(err.code, TRAIL_NO_MEMORY);
            /* Up to 1.25, a trace without a generation is not valid. */
            if (file.size > WIRE_HEADER_SIZE) {
                size_t read = read_back(&file, &p, !done);
                assert_true(read >= longest);
                longest = read;
            }
            file_clear(&file);
        }
        assert_true(longest > 1000);
    }
}

/* With any argument: only tests that need Go's tools; they are reported as skipped where there are
 * none. */
int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest with_go[] = {cmocka_unit_test(go_reads_what_was_written)};
    if (argc == 1)
        return run_all_tests(NULL, NULL);
    if (has_go())
        return cmocka_run_group_tests(with_go, NULL, NULL);
    puts("1..0 # SKIP no Go 1.22 to 1.27");
    return 77;
}
