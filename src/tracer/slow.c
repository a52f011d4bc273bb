/* Snapshots of slow tasks and regions: see slow.h. */
#include "tracer/slow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tracer/annotation.h"
#include "tracer/control.h"
#include "tracer/read.h"
#include "tracer/table.h"
#include "wire/recorded.h"

#define LOOK_NS           50000000
#define DEFAULT_EVERY_NS  ((int64_t)60 * 1000000000)
#define LEAST_EVERY_NS    ((int64_t)1000000000)
#define DEFAULT_MAX_BYTES (UINT64_C(1) << 30)
/* Something that has not ended is slow once it has lasted this many times the limit. */
#define OPEN_TIMES 2

#define SPANS     1024
#define PROBES    8
#define TAKEN     UINT64_MAX
#define NAME_SIZE 128

/*
 * A task or region that has begun. `key` is atomic: 0 if the slot is free, TAKEN while a thread has
 * the slot to itself. A release store of the key pairs with the acquire that finds it.
 */
struct span {
    uint64_t key;
    uint64_t begin_ns; /* atomic */
    char name[NAME_SIZE];
};

struct slow_event {
    bool is_task, ended;
    uint64_t lasted_ns;
    char name[NAME_SIZE];
};

enum { FOUND_NONE, FOUND_FILLING, FOUND_READY };

uint32_t slow_on;

static struct {
    /* Atomic: threads of the host read them. name_hash 0: any name. */
    uint64_t name_hash, limit_ns;
    struct span spans[SPANS];
    uint32_t found_state; /* atomic: FOUND_... */
    struct slow_event found;

    /* Owned by the thread while it runs, otherwise by the caller that holds `control`. */
    char folder[4096];
    int64_t every_ns, next_ns;
    uint64_t max_bytes, bytes;
    void (*written)(void *context, const char *path, const trail_error *err);
    void *context;
    pthread_t thread;
    bool has_thread, end; /* end: guarded by `lock` */
} slow;
static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER; /* of starts and stops */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* valid while there is a thread */

/* MARK: In the host's threads */

static uint64_t key_of(uint64_t id, uint32_t depth)
{
    return id << 6 | depth;
}

static struct span *nth(uint64_t key, unsigned i)
{
    return &slow.spans[(table_mix(key, 1) + i) % SPANS];
}

static bool take_span(struct span *span, uint64_t key)
{
    return __atomic_compare_exchange_n(&span->key, &key, TAKEN, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void copy_name(char *to, const char *name)
{
    size_t size = strnlen(name, NAME_SIZE - 1);
    memcpy(to, name, size);
    to[size] = '\0';
}

void slow_keep(uint64_t id, uint32_t depth, const char *name)
{
    uint64_t wanted = __atomic_load_n(&slow.name_hash, __ATOMIC_RELAXED);
    uint64_t key = key_of(id, depth);
    if (!name)
        name = "";
    if (depth > SLOW_DEEPEST || (wanted && wanted != table_hash_bytes(name, strlen(name))))
        return;
    for (unsigned i = 0; i < PROBES; i++) {
        struct span *span = nth(key, i);
        if (!take_span(span, 0))
            continue;
        __atomic_store_n(&span->begin_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
        copy_name(span->name, name);
        __atomic_store_n(&span->key, key, __ATOMIC_RELEASE);
        return;
    }
}

static void free_span(struct span *span)
{
    __atomic_store_n(&span->key, 0, __ATOMIC_RELEASE);
}

static struct slow_event event_of(const struct span *span, uint64_t key, bool ended)
{
    struct slow_event event = {.is_task = (key & SLOW_DEEPEST) == SLOW_TASK_DEPTH, .ended = ended};
    event.lasted_ns = clock_ns(CLOCK_MONOTONIC) - span->begin_ns;
    copy_name(event.name, span->name);
    return event;
}

/* Hands the event to the thread, unless that still has another. */
static void report(const struct slow_event *event)
{
    uint32_t none = FOUND_NONE;
    /* Pairs with the thread's release of FOUND_NONE; FOUND_READY pairs with the thread's load. */
    if (!__atomic_compare_exchange_n(&slow.found_state, &none, FOUND_FILLING, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    slow.found = *event;
    __atomic_store_n(&slow.found_state, FOUND_READY, __ATOMIC_RELEASE);
}

void slow_check(uint64_t id, uint32_t depth)
{
    uint64_t key = key_of(id, depth);
    for (unsigned i = 0; i < PROBES && depth <= SLOW_DEEPEST; i++) {
        struct span *span = nth(key, i);
        struct slow_event event;
        if (!take_span(span, key))
            continue;
        event = event_of(span, key, true);
        free_span(span);
        if (event.lasted_ns > __atomic_load_n(&slow.limit_ns, __ATOMIC_RELAXED))
            report(&event);
        return;
    }
}

/* MARK: The thread */

static bool is_too_long(const struct span *span, uint64_t now)
{
    uint64_t begin = __atomic_load_n(&span->begin_ns, __ATOMIC_RELAXED);
    return begin < now && (now - begin) / OPEN_TIMES > slow.limit_ns;
}

/*
 * Returns a task or region that has lasted too long without an end, and forgets it. A slot is taken
 * only then, because an end that finds it taken would be missed. If the slot has been used again
 * meanwhile, that region is not timed.
 */
static bool take_open(struct slow_event *event)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < SPANS; i++) {
        struct span *span = &slow.spans[i];
        uint64_t key = __atomic_load_n(&span->key, __ATOMIC_ACQUIRE);
        bool is_slow;
        if (key == 0 || key == TAKEN || !is_too_long(span, now) || !take_span(span, key))
            continue;
        is_slow = is_too_long(span, now);
        *event = event_of(span, key, false);
        free_span(span);
        if (is_slow)
            return true;
    }
    return false;
}

static bool take_found(struct slow_event *event)
{
    if (__atomic_load_n(&slow.found_state, __ATOMIC_ACQUIRE) != FOUND_READY)
        return false;
    *event = slow.found;
    __atomic_store_n(&slow.found_state, FOUND_NONE, __ATOMIC_RELEASE);
    return true;
}

/* The snapshot itself names what it was written for, as those of `trail record` do. */
static void note(const struct slow_event *event)
{
    char line[512];
    uint64_t generation;
    trail_m *m = open_any(&generation);
    int size =
        snprintf(line, sizeof line,
                 RECORDED_PREFIX "slow pid=%d count=0 cpu=0 recorder=0 name=%s %s %s %.1f ms "
                                 "(> %.1f ms)%s",
                 (int)getpid(), event->is_task ? "task" : "region", event->name,
                 event->ended ? "took" : "has taken", (double)event->lasted_ns / 1e6,
                 (double)slow.limit_ns / 1e6, event->ended ? "" : " and has not ended");
    if (!m)
        return;
    if (tracer.v2)
        (void)string_once(m, generation, line, (size_t)size);
    section_leave(m);
}

static int open_file(char *path, size_t size, trail_error *err)
{
    time_t now = time(NULL);
    struct tm utc;
    char when[32] = "";
    int fd;
    if (gmtime_r(&now, &utc))
        (void)strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &utc);
    (void)snprintf(path, size, "%s/slow-%s-%d.trace", slow.folder, when, (int)getpid());
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        (void)record_fail(err, TRAIL_IO, "cannot create %s: %s", path, strerror(errno));
    return fd;
}

static bool write_file(int fd, trail_error *err)
{
    uint64_t bytes = 0;
    bool ok = trail_flight_snapshot(fd, &bytes, err);
    if (close(fd) != 0 && ok)
        ok = record_fail(err, TRAIL_IO, "cannot write the snapshot: %s", strerror(errno));
    if (ok && bytes > slow.max_bytes - slow.bytes) {
        slow.bytes = slow.max_bytes; /* the last attempt */
        return record_fail(err, TRAIL_IO, "max_bytes leaves no room for another snapshot");
    }
    slow.bytes += ok ? bytes : 0;
    return ok;
}

static void write_snapshot(const struct slow_event *event)
{
    char path[sizeof slow.folder + 64];
    trail_error err;
    int64_t now = (int64_t)clock_ns(CLOCK_MONOTONIC);
    int fd;
    bool ok;
    if (now < slow.next_ns || slow.bytes == slow.max_bytes)
        return;
    slow.next_ns = now + slow.every_ns;
    note(event);
    fd = open_file(path, sizeof path, &err);
    ok = fd >= 0 && write_file(fd, &err);
    if (!ok && fd >= 0)
        (void)unlink(path);
    if (slow.written)
        slow.written(slow.context, ok ? path : NULL, ok ? NULL : &err);
}

/* Returns false when the thread is to end. */
static bool wait_to_look(void)
{
    struct timespec until = deadline_after(LOOK_NS);
    bool end;
    pthread_mutex_lock(&lock);
    if (!slow.end)
        (void)pthread_cond_timedwait(&changed, &lock, &until);
    end = slow.end;
    pthread_mutex_unlock(&lock);
    return !end;
}

static void *look(void *context)
{
    (void)context;
    while (wait_to_look()) {
        struct slow_event event;
        while (take_found(&event) || take_open(&event))
            write_snapshot(&event);
    }
    return NULL;
}

/* MARK: Start, stop */

/* `control` is held. */
static void stop(void)
{
    if (!slow.has_thread)
        return;
    __atomic_store_n(&slow_on, 0, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    slow.end = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(slow.thread, NULL);
    pthread_cond_destroy(&changed);
    slow.has_thread = false;
}

void slow_stop(void)
{
    pthread_mutex_lock(&control);
    stop();
    pthread_mutex_unlock(&control);
}

static bool check(const trail_flight_slow *options, trail_error *err)
{
    if (options->size < sizeof *options)
        return record_fail(err, TRAIL_USAGE, "size must be sizeof(trail_flight_slow)");
    if (options->limit_ns <= 0)
        return record_fail(err, TRAIL_USAGE, "limit_ns must be greater than 0");
    if (options->every_ns && options->every_ns < LEAST_EVERY_NS)
        return record_fail(err, TRAIL_USAGE, "every_ns must be at least a second");
    if (!options->folder || strlen(options->folder) >= sizeof slow.folder)
        return record_fail(err, TRAIL_USAGE, "folder is NULL or too long");
    if (access(options->folder, W_OK | X_OK) != 0)
        return record_fail(err, TRAIL_IO, "cannot write to %s: %s", options->folder,
                           strerror(errno));
    return true;
}

static bool start_thread(trail_error *err)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attr);
    pthread_condattr_destroy(&attr);
    slow.has_thread = library_thread(&slow.thread, look, NULL, "writes", err);
    if (!slow.has_thread)
        pthread_cond_destroy(&changed);
    return slow.has_thread;
}

/* `control` is held, and the thread does not run. */
static bool begin(const trail_flight_slow *options, trail_error *err)
{
    const char *name = options->name ? options->name : "";
    /* Threads of the host may still be at the end of an earlier limit. */
    for (size_t i = 0; i < SPANS; i++) {
        uint64_t key = __atomic_load_n(&slow.spans[i].key, __ATOMIC_RELAXED);
        if (key && key != TAKEN && take_span(&slow.spans[i], key))
            free_span(&slow.spans[i]);
    }
    (void)take_found(&(struct slow_event){0});
    memcpy(slow.folder, options->folder, strlen(options->folder) + 1);
    slow.every_ns = options->every_ns ? options->every_ns : DEFAULT_EVERY_NS;
    slow.max_bytes = options->max_bytes ? options->max_bytes : DEFAULT_MAX_BYTES;
    slow.written = options->written;
    slow.context = options->context;
    slow.next_ns = 0;
    slow.bytes = 0;
    slow.end = false;
    __atomic_store_n(&slow.name_hash, *name ? table_hash_bytes(name, strlen(name)) : 0,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&slow.limit_ns, (uint64_t)options->limit_ns, __ATOMIC_RELAXED);
    if (!start_thread(err))
        return false;
    __atomic_store_n(&slow_on, 1, __ATOMIC_RELAXED);
    return true;
}

bool trail_flight_on_slow(const trail_flight_slow *options, trail_error *err)
{
    bool ok;
    tracer_init();
    if (read_refuses_call(err) || (options && !check(options, err)))
        return false;
    pthread_mutex_lock(&control);
    stop();
    ok = !options || begin(options, err);
    pthread_mutex_unlock(&control);
    return ok;
}

void slow_after_fork(void)
{
    slow_on = 0;
    memset(slow.spans, 0, sizeof slow.spans);
    slow.found_state = FOUND_NONE;
    slow.has_thread = false;
    pthread_mutex_init(&control, NULL);
    pthread_mutex_init(&lock, NULL);
}
