/* The collector's side of the area: see area.h. */
#include "collect/area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/grow.h"
#include "shm/stack_table.h"

/* Clocks of different CPUs may differ by this much: a time may be later than now. */
#define SKEW_NS 1000000

/* A program cannot have more memory than addresses. */
#define HEAP_MAX (INT64_C(1) << 47)

struct area {
    struct shm_area *shared;
    bool owned; /* area_close unmaps it */
    struct area_inode inode;
    struct area_options options;
    uint64_t hold_ticks;
    const struct ticks *ticks;
    uint64_t opened, skew; /* ticks */
    uint64_t now;          /* a recent reading of the clock */
    uint64_t damage;
    uint32_t chunks_left;        /* chunks that this step may still enter */
    bool last;                   /* each chunk is entered at most once */
    uint32_t executed_seen;      /* how far the header's executed_count was read */
    bool executed_stuck;         /* the next entry was being written at the last call */
    uint32_t words_seen;         /* words of the stacks and texts read so far */
    uint8_t held[SHM_CHUNKS];    /* the chunk is in a chain being read */
    uint8_t visited[SHM_CHUNKS]; /* ... was in one, during the last step */
    uint8_t
        *words_counted; /* one bit per stack or text: counted in words_seen. Grows on demand: most
                             * processes of a build have a few */
    size_t words_room;
    uint8_t waited[SHM_THREADS / 8]; /* one bit per slot that was announced as waiting */
};

void area_count_damage(struct area *area)
{
    area->damage++;
}

uint64_t area_damage(const struct area *area)
{
    return area->damage;
}

/* MARK: Making */

struct area *area_over(struct shm_area *memory, const struct area_options *options,
                       const struct ticks *ticks, uint64_t opened)
{
    struct area *area = calloc(1, sizeof *area);
    if (!area)
        return NULL;
    area->shared = memory;
    area->options = *options;
    area->ticks = ticks;
    area->opened = area->now = opened;
    area->skew = ticks_of_ns(ticks, SKEW_NS);
    area->hold_ticks = options->hold_ns ? ticks_of_ns(ticks, (uint64_t)options->hold_ns) : 0;
    return area;
}

/* Writes the header of a new area, whose other bytes are zero. */
static void write_header(const struct area *area)
{
    struct shm_header *header = &area->shared->header;
    const struct area_options *o = &area->options;
    header->version = SHM_VERSION;
    header->size_check = sizeof(struct shm_area) / 4096;
    header->groups = o->groups;
    header->stacks = o->stacks;
    header->children = o->children;
    header->heap = o->heap;
    header->board = (uint32_t)o->board;
    header->all_holds = o->all_holds;
    header->sample_ns = o->sample_ns;
    header->has_counter = area->ticks->clock.counter;
    header->step_ticks = ticks_of_ns(area->ticks, AREA_TICK_NS);
    header->min_wait_ticks = ticks_of_ns(area->ticks, (uint64_t)o->min_wait_ns);
    header->hold_ticks = area->hold_ticks;
    header->chunks_used = 1;
    header->threads_used = 1;
    header->stack_words_used = 1;
    header->magic = SHM_MAGIC;
}

static bool is_limited(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* Makes an area in an open file. NULL with *err. */
static struct area *make_in(int fd, const struct area_options *options, const struct ticks *ticks,
                            trail_error *err)
{
    struct stat status;
    struct shm_area *memory;
    if (ftruncate(fd, sizeof *memory) != 0 || fstat(fd, &status) != 0) {
        (void)error_set(err, TRAIL_IO, "cannot make the memory that is shared with the program: %s",
                        strerror(errno));
        return NULL;
    }
    memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        const int reason = errno;
        (void)error_set(err, TRAIL_NO_MEMORY,
                        "cannot map the %zu MiB that are shared with the program: %s%s",
                        sizeof *memory >> 20, strerror(reason),
                        is_limited() ? "; the address space is limited: raise ulimit -v" : "");
        return NULL;
    }
    struct area *area = area_over(memory, options, ticks, ticks_now(ticks));
    if (!area) {
        (void)error_no_memory(err);
        munmap(memory, sizeof *memory);
        return NULL;
    }
    area->owned = true;
    area->inode = (struct area_inode){status.st_dev, status.st_ino};
    write_header(area);
    return area;
}

struct area *area_make(const struct area_options *options, const struct ticks *ticks, int *fd,
                       trail_error *err)
{
    *fd = memfd_create("trail", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0) {
        (void)error_set(err, TRAIL_IO, "cannot make the memory that is shared with the program: %s",
                        strerror(errno));
        return NULL;
    }
    struct area *area = make_in(*fd, options, ticks, err);
    /* Processes that map the memory may write to it, but not truncate it. */
    if (area && fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        (void)error_set(err, TRAIL_IO, "cannot seal the memory that is shared with the program: %s",
                        strerror(errno));
        area_close(area);
        area = NULL;
    }
    if (!area)
        close(*fd);
    return area;
}

struct area *area_make_file(const char *path, const struct area_options *options,
                            const struct ticks *ticks, trail_error *err)
{
    struct area *area = NULL;
    char *beside = NULL;
    if (asprintf(&beside, "%s.XXXXXX", path) < 0) {
        (void)error_no_memory(err);
        return NULL;
    }
    int fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        (void)error_set(err, TRAIL_IO, "cannot create %s: %s", path, strerror(errno));
    else
        area = make_in(fd, options, ticks, err);
    if (area)
        area->inode.device = 0;
    if (area && rename(beside, path) != 0) {
        (void)error_set(err, TRAIL_IO, "cannot create %s: %s", path, strerror(errno));
        area_close(area);
        area = NULL;
    }
    if (fd >= 0 && !area)
        (void)unlink(beside);
    if (fd >= 0)
        close(fd);
    free(beside);
    return area;
}

void area_close(struct area *area)
{
    if (area && area->owned)
        munmap(area->shared, sizeof *area->shared);
    if (area)
        free(area->words_counted);
    free(area);
}

/* MARK: What the collector writes */

void area_tick(struct area *area, uint64_t ticks)
{
    __atomic_store_n(&area->shared->header.coarse, ticks & ~SHM_EXACT, __ATOMIC_RELAXED);
}

void area_set_groups(struct area *area, uint32_t groups)
{
    __atomic_store_n(&area->shared->header.groups, groups, __ATOMIC_RELAXED);
}

bool area_has_group(const struct area *area, uint32_t group)
{
    return __atomic_load_n(&area->shared->header.groups, __ATOMIC_RELAXED) & group;
}

void area_set_root(struct area *area, pid_t pid)
{
    __atomic_store_n(&area->shared->header.root_pid, (uint32_t)pid, __ATOMIC_RELEASE);
}

void area_announce(struct area *area, const struct shm_waiting *waiting)
{
    struct shm_header *header = &area->shared->header;
    uint32_t index = header->announced + 1;
    struct shm_thread *slot = &area->shared->threads[index % SHM_THREADS];
    if (index >= SHM_THREADS || index >= SHM_CHUNKS) {
        header->lost_threads++;
        return;
    }
    *slot = (struct shm_thread){
        .tid = waiting->tid,
        .serial = index,
        .state = SHM_LIVE,
        .first = index,
        .routine = waiting->start,
        .open_wait = (uint8_t)waiting->wait,
        .open_object = waiting->object,
        .open_detail = waiting->detail,
        .open_pc = waiting->count ? waiting->pcs[0] : 0,
        .open_stack = waiting->count ? area_add_stack(area, waiting->pcs, waiting->count) : 0,
    };
    if (waiting->wait)
        area->waited[index / 8] |= (uint8_t)(1u << index % 8);
    header->announced = header->serials = index;
    header->threads_used = header->chunks_used = index + 1;
}

void area_forget_announced(struct area *area)
{
    struct shm_header *header = &area->shared->header;
    header->announced = header->serials = 0;
    header->threads_used = header->chunks_used = 1;
    memset(area->waited, 0, sizeof area->waited);
}

bool area_waited_before(const struct area *area, uint32_t slot)
{
    return slot < SHM_THREADS && (area->waited[slot / 8] >> slot % 8 & 1);
}

void area_refuse(struct area *area)
{
    __atomic_store_n(&area->shared->header.magic, 0, __ATOMIC_RELAXED);
}

/* MARK: Times */

/* Whether a time lies between the creation of the area and now, within the skew. Clamps it into
 * that range. */
static bool bring_into_range(struct area *area, uint64_t *time)
{
    if (__builtin_expect(*time > area->now, 0))
        area->now = ticks_now(area->ticks);
    if (*time > area->now) {
        if (*time - area->now > area->skew)
            return false;
        *time = area->now;
    }
    if (*time < area->opened) {
        if (area->opened - *time > area->skew)
            return false;
        *time = area->opened;
    }
    return true;
}

/* MARK: Its life */

pid_t area_claimed(const struct area *area)
{
    uint32_t pid = __atomic_load_n(&area->shared->header.claimed, __ATOMIC_ACQUIRE);
    return pid <= INT32_MAX ? (pid_t)pid : 0;
}

bool area_is_in_use(const struct area *area)
{
    return area_mapped_at(area) != 0 || area_threads(area) > 1 ||
           __atomic_load_n(&area->shared->header.claimed_at, __ATOMIC_RELAXED) != 0;
}

uint64_t area_claimed_at(const struct area *area)
{
    uint64_t at = __atomic_load_n(&area->shared->header.claimed_at, __ATOMIC_ACQUIRE);
    return at >= area->opened && at <= ticks_now(area->ticks) ? at : 0;
}

uint64_t area_pid_namespace(const struct area *area)
{
    return __atomic_load_n(&area->shared->header.pid_namespace, __ATOMIC_RELAXED);
}

uint64_t area_mapped_at(const struct area *area)
{
    return __atomic_load_n(&area->shared->header.mapped_at, __ATOMIC_RELAXED);
}

bool area_is_forking(const struct area *area)
{
    return __atomic_load_n(&area->shared->header.forking, __ATOMIC_ACQUIRE) != 0;
}

struct area_inode area_inode(const struct area *area)
{
    return area->inode;
}

const struct area_options *area_options(const struct area *area)
{
    return &area->options;
}

uint64_t area_hold_ticks(const struct area *area)
{
    return area->hold_ticks;
}

struct area_losses area_losses(const struct area *area)
{
    const struct shm_header *header = &area->shared->header;
    return (struct area_losses){__atomic_load_n(&header->lost_stacks, __ATOMIC_RELAXED),
                                __atomic_load_n(&header->lost_threads, __ATOMIC_RELAXED),
                                __atomic_load_n(&header->lost_samples, __ATOMIC_RELAXED),
                                __atomic_load_n(&header->turned_away, __ATOMIC_RELAXED),
                                __atomic_load_n(&header->confined, __ATOMIC_RELAXED)};
}

/* Copies one entry; false if it is being written. Skips entries left unfinished by a process that
 * was killed. */
static bool copy_executed(struct area *area, struct shm_executed *to)
{
    const struct shm_executed *from =
        &area->shared->header.executed[area->executed_seen % SHM_EXECUTED];
    to->pid = __atomic_load_n(&from->pid, __ATOMIC_ACQUIRE);
    if (to->pid == 0 && !area->executed_stuck) {
        area->executed_stuck = true;
        return false;
    }
    memcpy(to->name, from->name, sizeof to->name);
    to->name[sizeof to->name - 1] = '\0';
    area->executed_stuck = false;
    area->executed_seen++;
    return true;
}

size_t area_executed(struct area *area, struct shm_executed *to, uint64_t *missed)
{
    uint32_t all = __atomic_load_n(&area->shared->header.executed_count, __ATOMIC_ACQUIRE);
    uint32_t left = all - area->executed_seen;
    size_t count = 0;
    *missed = left > SHM_EXECUTED ? left - SHM_EXECUTED : 0;
    area->executed_seen += (uint32_t)*missed;
    while (area->executed_seen != all && copy_executed(area, &to[count]))
        count += to[count].pid != 0;
    return count;
}

/* MARK: Free lists; the program's side is in preload/record.c */

static void give_back(uint64_t *head, uint32_t index, uint32_t *link)
{
    uint64_t old = __atomic_load_n(head, __ATOMIC_RELAXED), next;
    do {
        __atomic_store_n(link, (uint32_t)old, __ATOMIC_RELAXED);
        next = ((old >> 32) + 1) << 32 | index;
    } while (
        !__atomic_compare_exchange_n(head, &old, next, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/*
 * Empties the chunk, so that a stale link to it finds no records. In the last step chunks are kept:
 * the program may go on, and a chunk that it took again would be entered twice.
 */
static void free_chunk(struct area *area, uint32_t index)
{
    struct shm_chunk *chunk = shm_chunk(area->shared, index);
    if (area->last)
        return;
    area->held[index] = 0;
    __atomic_store_n(&chunk->used, 0, __ATOMIC_RELAXED);
    give_back(&area->shared->header.free_chunks, index, &chunk->next);
}

/* MARK: Threads */

uint32_t area_threads(const struct area *area)
{
    uint32_t used = __atomic_load_n(&area->shared->header.threads_used, __ATOMIC_ACQUIRE);
    return used < SHM_THREADS ? used : SHM_THREADS;
}

static int64_t sane_heap(int64_t bytes)
{
    return bytes < -HEAP_MAX ? -HEAP_MAX : bytes > HEAP_MAX ? HEAP_MAX : bytes;
}

struct area_thread area_thread(const struct area *area, uint32_t slot)
{
    const struct shm_thread *shared = &area->shared->threads[slot];
    /* Pairs with the stores in preload/record.c: what is read afterwards belongs to this state. */
    uint32_t state = __atomic_load_n(&shared->state, __ATOMIC_ACQUIRE);
    return (struct area_thread){
        .state = state <= SHM_ENDED ? (enum shm_thread_state)state : SHM_FREE,
        .writing = __atomic_load_n(&shared->writing, __ATOMIC_ACQUIRE) != 0,
        .serial = __atomic_load_n(&shared->serial, __ATOMIC_RELAXED),
        .tid = __atomic_load_n(&shared->tid, __ATOMIC_RELAXED),
        .lost = __atomic_load_n(&shared->lost, __ATOMIC_RELAXED),
        .short_waits = __atomic_load_n(&shared->short_waits, __ATOMIC_RELAXED),
        .heap = sane_heap(__atomic_load_n(&shared->heap, __ATOMIC_RELAXED)),
        .holds = __atomic_load_n(&shared->holds, __ATOMIC_RELAXED),
    };
}

int64_t area_heap_rest(const struct area *area)
{
    return sane_heap(__atomic_load_n(&area->shared->header.heap_rest, __ATOMIC_RELAXED));
}

void area_keep_heap(struct area *area, int64_t bytes)
{
    /* Pairs with the load in before_fork, preload/area.c. */
    (void)__atomic_add_fetch(&area->shared->header.heap_ended, bytes, __ATOMIC_RELAXED);
}

void area_begin_step(struct area *area, bool last)
{
    if (last && !area->last)
        memcpy(area->visited, area->held, sizeof area->visited);
    area->last = last;
    area->chunks_left = SHM_CHUNKS;
    area->now = ticks_now(area->ticks);
}

bool area_is_exhausted(const struct area *area)
{
    return area->chunks_left == 0;
}

static bool is_chunk(uint32_t index)
{
    return index != 0 && index < SHM_CHUNKS;
}

/* Ends a chain whose link is invalid. */
static bool break_chain(struct area *area, struct area_cursor *cursor)
{
    area->damage++;
    cursor->broken = true;
    return false;
}

/* Moves the cursor to the first chunk, or the next; false: there is none yet. */
static bool move_on(struct area *area, uint32_t slot, struct area_cursor *cursor)
{
    uint32_t next;
    /* Both pair with the stores in room(), preload/record.c. */
    if (!cursor->chunk)
        next = __atomic_load_n(&area->shared->threads[slot].first, __ATOMIC_ACQUIRE);
    else
        next = __atomic_load_n(&shm_chunk(area->shared, cursor->chunk)->next, __ATOMIC_ACQUIRE);
    if (next == 0 || area->chunks_left == 0)
        return false;
    if (!is_chunk(next) || area->held[next] || (area->last && area->visited[next]))
        return break_chain(area, cursor);
    if (cursor->chunk)
        free_chunk(area, cursor->chunk);
    area->held[next] = area->visited[next] = 1;
    area->chunks_left--;
    *cursor = (struct area_cursor){.chunk = next};
    return true;
}

/* Checks all fields of a record except its times. */
static bool has_sound_fields(const struct shm_record *r)
{
    switch (r->kind) {
    case SHM_WAITED:
        return r->wait != SHM_NO_WAIT && r->wait < SHM_WAITS;
    case SHM_RELEASED:
        return r->wait < SHM_WAITS;
    case SHM_COUNTED:
        return r->wait < SHM_WAITS;
    case SHM_TEXT:
        return r->flags <= SHM_TEXT_PIECE;
    case SHM_POLLED:
        return r->flags <= SHM_POLLED_MAX && r->detail & SHM_SEVERAL;
    case SHM_INTERRUPTED:
        return shm_is_signals(r->object);
    case SHM_HEAP:
        return (int64_t)r->object == sane_heap((int64_t)r->object);
    default:
        return r->kind != 0 && r->kind < SHM_KINDS;
    }
}

/*
 * Checks that the times lie within the recording and that a wait ends after it begins. An
 * impossible start of a hold is cleared.
 */
static bool has_sound_times(struct area *area, struct shm_record *r)
{
    if (r->kind == SHM_TEXT)
        return true;
    if (!bring_into_range(area, &r->time))
        return false;
    if (r->kind == SHM_COUNTED)
        return r->object2 <= r->time - area->opened;
    if (r->kind == SHM_WAITED)
        return bring_into_range(area, &r->end) && r->end >= r->time;
    if (r->kind == SHM_RELEASED && r->end && (r->end < area->opened || r->end > r->time))
        r->end = 0;
    return true;
}

static bool is_sound(struct area *area, struct shm_record *r)
{
    if (!has_sound_fields(r) || !has_sound_times(area, r))
        return false;
    if (r->stack >= SHM_STACK_WORDS)
        r->stack = 0;
    return true;
}

/* Copies the next record of the cursor's chunk; false: there is none yet. */
static bool take_record(const struct area *area, struct area_cursor *cursor,
                        struct shm_record *record)
{
    const struct shm_chunk *chunk = shm_chunk(area->shared, cursor->chunk);
    /* Pairs with the store in record_put. */
    if (cursor->at >= SHM_CHUNK_RECORDS ||
        cursor->at >= __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE))
        return false;
    memcpy(record, (const void *)&chunk->records[cursor->at++], sizeof *record);
    return true;
}

bool area_next(struct area *area, uint32_t slot, struct area_cursor *cursor,
               struct shm_record *record)
{
    while (!cursor->broken) {
        if (cursor->chunk && take_record(area, cursor, record)) {
            /* Keeps the compiler from reading the shared record again after the check. */
            __asm__ volatile("" : : "r"(record) : "memory");
            if (is_sound(area, record))
                return true;
            area->damage++;
            continue;
        }
        if (cursor->chunk && cursor->at < SHM_CHUNK_RECORDS)
            return false;
        if (!move_on(area, slot, cursor))
            return false;
    }
    return false;
}

void area_free_thread(struct area *area, uint32_t slot, struct area_cursor *cursor)
{
    struct shm_thread *shared = &area->shared->threads[slot];
    if (cursor->chunk)
        free_chunk(area, cursor->chunk);
    *cursor = (struct area_cursor){0};
    __atomic_store_n(&shared->first, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->state, SHM_FREE, __ATOMIC_RELAXED);
    give_back(&area->shared->header.free_threads, slot, &shared->next_free);
}

bool area_open_call(struct area *area, uint32_t slot, struct area_open *open)
{
    const struct shm_thread *shared = &area->shared->threads[slot];
    /* The program writes the fields before the time, and every call has its own time. */
    uint64_t time = __atomic_load_n(&shared->open_time, __ATOMIC_ACQUIRE);
    if (!time)
        return false;
    *open = (struct area_open){
        .time = time,
        .object = __atomic_load_n(&shared->open_object, __ATOMIC_RELAXED),
        .pc = __atomic_load_n(&shared->open_pc, __ATOMIC_RELAXED),
        .held_pc = __atomic_load_n(&shared->open_held_pc, __ATOMIC_RELAXED),
        .sp = __atomic_load_n(&shared->open_sp, __ATOMIC_RELAXED),
        .fp = __atomic_load_n(&shared->open_fp, __ATOMIC_RELAXED),
        .stack = __atomic_load_n(&shared->open_stack, __ATOMIC_RELAXED),
        .detail = __atomic_load_n(&shared->open_detail, __ATOMIC_RELAXED),
        .wait = __atomic_load_n(&shared->open_wait, __ATOMIC_RELAXED),
    };
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&shared->open_time, __ATOMIC_RELAXED) != time ||
        open->wait == SHM_NO_WAIT || open->wait >= SHM_WAITS ||
        !bring_into_range(area, &open->time))
        return false;
    if (open->stack >= SHM_STACK_WORDS)
        open->stack = 0;
    /* For other waits the value is left over from the last lock. */
    if (!shm_is_lock(open->wait) && open->wait != SHM_COND)
        open->held_pc = 0;
    return true;
}

/* Reads the lock in a slot if its words are consistent. */
static bool read_hold(const struct shm_object *shared, size_t slot, struct area_hold *hold)
{
    uint64_t object = __atomic_load_n(&shared->held, __ATOMIC_ACQUIRE);
    uint64_t holder = __atomic_load_n(&shared->holder, __ATOMIC_RELAXED);
    unsigned how = holder >> 24 & 0xff;
    bool is_shared = how & SHM_HELD_SHARED;

    *hold = (struct area_hold){
        .object = is_shared ? __atomic_load_n(&shared->shared, __ATOMIC_RELAXED) : object,
        .address = object,
        .since = __atomic_load_n(&shared->held_since, __ATOMIC_RELAXED),
        .pc = __atomic_load_n(&shared->held_pc, __ATOMIC_RELAXED),
        .serial = (uint32_t)(holder >> 32),
        .wait = (uint8_t)(how & ~SHM_HELD_SHARED),
    };
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return object != 0 && shm_object_slot(object) == slot && hold->wait < SHM_WAITS &&
           shm_is_lock(hold->wait) && is_shared == shm_is_memory(hold->object) &&
           holder == shm_holder(hold->serial, how, object) &&
           __atomic_load_n(&shared->held, __ATOMIC_RELAXED) == object;
}

/* Reads a lock that a thread holds for reading. */
static bool read_reading(const struct shm_reading *shared, uint32_t serial, struct area_hold *hold)
{
    uint64_t object = __atomic_load_n(&shared->object, __ATOMIC_ACQUIRE);
    uint64_t other = __atomic_load_n(&shared->shared, __ATOMIC_RELAXED);
    *hold = (struct area_hold){.object = other ? other : object,
                               .address = object,
                               .since = __atomic_load_n(&shared->since, __ATOMIC_RELAXED),
                               .pc = __atomic_load_n(&shared->pc, __ATOMIC_RELAXED),
                               .serial = serial,
                               .wait = SHM_RDLOCK};
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return object != 0 && object >> 60 != 0xf && shm_is_memory(hold->object) == (other != 0) &&
           __atomic_load_n(&shared->object, __ATOMIC_RELAXED) == object;
}

size_t area_holds(const struct area *area, struct area_hold *holds)
{
    uint32_t threads = __atomic_load_n(&area->shared->header.threads_used, __ATOMIC_RELAXED);
    size_t count = 0;

    for (size_t slot = 0; slot < SHM_OBJECTS; slot++)
        count += read_hold(&area->shared->objects[slot], slot, &holds[count]);
    for (uint32_t slot = 1; slot < SHM_THREADS && slot < threads; slot++) {
        const struct shm_thread *thread = &area->shared->threads[slot];
        uint32_t serial = __atomic_load_n(&thread->serial, __ATOMIC_RELAXED);
        if (__atomic_load_n(&thread->state, __ATOMIC_ACQUIRE) != SHM_LIVE)
            continue;
        for (size_t i = 0; i < SHM_READINGS && count < SHM_OBJECTS; i++)
            count += read_reading(&thread->reading[i], serial, &holds[count]);
    }
    return count;
}

/* MARK: Tables */

/* Whether the words of a stack or text fit into the table together with those read so far. Counts
 * each stack or text once. */
static bool count_words(struct area *area, uint32_t number, size_t words)
{
    uint8_t *byte, bit = (uint8_t)(1u << number % 8);
    size_t had = area->words_room;
    if (!GROW(area->words_counted, area->words_room, number / 8 + 1))
        return false;
    memset(area->words_counted + had, 0, area->words_room - had);
    byte = &area->words_counted[number / 8];
    if (*byte & bit)
        return true;
    if (words + 1 > SHM_STACK_WORDS - area->words_seen) {
        area->damage++;
        return false;
    }
    *byte |= bit;
    area->words_seen += (uint32_t)words + 1;
    return true;
}

size_t area_stack(struct area *area, uint32_t number, uint64_t *pcs)
{
    if (number == 0 || number >= SHM_STACK_WORDS)
        return 0;
    uint64_t count = __atomic_load_n(&area->shared->stack_words[number], __ATOMIC_RELAXED);
    if (count > SHM_STACK_FRAMES || number + count >= SHM_STACK_WORDS ||
        !count_words(area, number, (size_t)count))
        return 0;
    memcpy(pcs, &area->shared->stack_words[number + 1], (size_t)count * sizeof *pcs);
    return (size_t)count;
}

uint32_t area_add_stack(struct area *area, const uint64_t *pcs, size_t count)
{
    return stack_table_number(area->shared, count, pcs, count);
}

size_t area_text(struct area *area, uint32_t number, char *text)
{
    if (number == 0 || number >= SHM_STACK_WORDS - SHM_STACK_FRAMES)
        return 0;
    uint64_t head = __atomic_load_n(&area->shared->stack_words[number], __ATOMIC_RELAXED);
    if (head <= SHM_TEXT_BIT || head > SHM_TEXT_BIT + SHM_TEXT_MAX)
        return 0;
    size_t size = (size_t)(head - SHM_TEXT_BIT);
    if (!count_words(area, number, (size + 7) / 8))
        return 0;
    memcpy(text, &area->shared->stack_words[number + 1], size);
    return size;
}

uint32_t area_fork(const struct area *area)
{
    return __atomic_load_n(&area->shared->header.fork, __ATOMIC_ACQUIRE);
}

uint32_t area_generation(const struct area *area, uint32_t fd)
{
    return __atomic_load_n(&area->shared->generations[fd], __ATOMIC_ACQUIRE);
}

bool area_has_connected(const struct area *area, uint32_t fd)
{
    return __atomic_load_n(&area->shared->connected[fd], __ATOMIC_RELAXED) != 0;
}

char *area_modules(const struct area *area, uint32_t *version, bool *no_memory)
{
    const struct shm_header *header = &area->shared->header;
    uint32_t now = __atomic_load_n(&header->modules_version, __ATOMIC_ACQUIRE);
    uint32_t used = __atomic_load_n(&header->modules_used, __ATOMIC_ACQUIRE);
    if (now == *version || now % 2 || used > SHM_MODULES_SIZE)
        return NULL;
    char *text = malloc(used + 1);
    if (!text) {
        *no_memory = true;
        return NULL;
    }
    memcpy(text, area->shared->modules, used);
    text[used] = '\0';
    if (__atomic_load_n(&header->modules_version, __ATOMIC_ACQUIRE) != now) {
        free(text);
        return NULL;
    }
    *version = now;
    return text;
}

bool area_program(const struct area *area, char *path, size_t size)
{
    static const char key[] = " path=";
    uint32_t version = 0;
    bool no_memory = false;
    char *lines = area_modules(area, &version, &no_memory), *at = lines ? strstr(lines, key) : NULL;
    int length = at ? (int)strcspn(at += sizeof key - 1, "\n") : 0;
    if (length > 0)
        (void)snprintf(path, size, "%.*s", length, at);
    free(lines);
    return length > 0;
}
