/* Regions: see regions.h. */
#include "tracer/regions.h"

#include <string.h>

#include "tracer/annotation.h"
#include "tracer/lock.h"
#include "tracer/memory.h"
#include "tracer/slow.h"
#include "tracer/stack.h"

/* MARK: The open regions of a goroutine */

/*
 * Readers reject a trace in which a region ends that is not its goroutine's innermost one (§6.5). A
 * region is identified by its task and the hash of its name, whose ID changes with the generation.
 */
static uint32_t hash_mark(uint64_t task, uint64_t hash)
{
    return (uint32_t)table_mix(hash, task);
}

static uint32_t region_mark(uint64_t task, const struct table_entry *name)
{
    return hash_mark(task, name ? name->hash : 0);
}

static void push_region(trail_g *g, uint32_t mark, const char *name)
{
    if (g->regions_session_ != tracer.first_generation) {
        g->regions_session_ = tracer.first_generation;
        g->region_count_ = 0;
    }
    if (g->region_count_ < TRAIL_CHECKED_REGIONS_)
        g->regions_[g->region_count_] = mark;
    slow_begin(g->id, ++g->region_count_, name);
}

/* Whether a region began in this session and has not ended. */
static bool has_region(const trail_g *g)
{
    return g->regions_session_ == tracer.first_generation && g->region_count_ > 0;
}

/* Returns false if another region is innermost. A region that began before the trace may end in
 * it. */
static bool pop_region(trail_g *g, uint32_t mark)
{
    if (!has_region(g))
        return true;
    if (g->region_count_ <= TRAIL_CHECKED_REGIONS_ && g->regions_[g->region_count_ - 1] != mark)
        return false;
    slow_end(g->id, g->region_count_--);
    return true;
}

/* MARK: Kept ends
 *
 * By goroutine, in the order in which the scopes ended. A goroutine that ends with open regions is
 * noted, so that ends which come later are dropped instead of kept.
 */

struct end {
    struct end *next;
    uint64_t goroutine, task;
    uint32_t mark;
    const struct table_entry *name; /* in kept.names, with its NUL */
};

#define BUCKETS      1024
#define ENDS_AT_ONCE 1024
#define MAX_ENDED    1024

uint32_t regions_kept;

/* Guarded by the lock, under which no event is written. */
static struct {
    pthread_mutex_t lock;
    struct end *buckets[BUCKETS];
    struct end *free;
    struct table names;
    /* Ended goroutines with the number of their open regions; the oldest is replaced. */
    struct {
        uint64_t goroutine;
        uint32_t regions;
    } ended[MAX_ENDED];
    size_t next_ended;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

void regions_reset(void)
{
    pthread_mutex_lock(&kept.lock);
    for (size_t i = 0; i < BUCKETS; i++) {
        while (kept.buckets[i]) {
            struct end *end = kept.buckets[i];
            kept.buckets[i] = end->next;
            end->next = kept.free;
            kept.free = end;
        }
    }
    table_reset(&kept.names);
    kept.names.limit = (size_t)1 << 20;
    memset(kept.ended, 0, sizeof kept.ended);
    kept.next_ended = 0;
    __atomic_store_n(&regions_kept, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&kept.lock);
}

void regions_after_fork(void)
{
    pthread_mutex_init(&kept.lock, NULL);
}

void regions_forget(trail_g *g)
{
    lock_mutex(&kept.lock);
    for (struct end **link = &kept.buckets[g->id % BUCKETS]; *link;) {
        struct end *end = *link;
        if (end->goroutine != g->id) {
            link = &end->next;
            continue;
        }
        *link = end->next;
        end->next = kept.free;
        kept.free = end;
        if (g->region_count_)
            slow_end(g->id, g->region_count_--);
        __atomic_fetch_sub(&regions_kept, 1, __ATOMIC_RELAXED);
    }
    if (g->region_count_) {
        kept.ended[kept.next_ended].goroutine = g->id;
        kept.ended[kept.next_ended].regions = g->region_count_;
        kept.next_ended = (kept.next_ended + 1) % MAX_ENDED;
    }
    while (g->region_count_)
        slow_end(g->id, g->region_count_--);
    pthread_mutex_unlock(&kept.lock);
}

/*
 * Whether the goroutine ended with an open region; if so, counts one off. The lock is held, as in
 * the next two functions.
 */
static bool has_ended(uint64_t goroutine)
{
    for (size_t i = 0; i < MAX_ENDED; i++) {
        if (kept.ended[i].goroutine != goroutine || !kept.ended[i].regions)
            continue;
        kept.ended[i].regions--;
        return true;
    }
    return false;
}

static struct end *new_end(void)
{
    struct end *end;
    if (!kept.free) {
        end = memory_map(ENDS_AT_ONCE * sizeof *end);
        for (size_t i = 0; end && i < ENDS_AT_ONCE; i++) {
            end[i].next = kept.free;
            kept.free = &end[i];
        }
    }
    end = kept.free;
    if (end)
        kept.free = end->next;
    return end;
}

static bool append_end(uint64_t goroutine, uint64_t task, const char *name)
{
    struct end **link = &kept.buckets[goroutine % BUCKETS], *end;
    size_t size = strnlen(name, string_max());
    uint64_t hash = size ? table_hash_bytes(name, size) : 0;
    const struct table_entry *entry =
        table_put(&kept.names, name, strlen(name) + 1, hash ^ 1, NULL);
    end = entry ? new_end() : NULL;
    if (!end)
        return false;
    *end = (struct end){NULL, goroutine, task, hash_mark(task, hash), entry};
    while (*link)
        link = &(*link)->next;
    *link = end;
    __atomic_fetch_add(&regions_kept, 1, __ATOMIC_RELAXED);
    return true;
}

static void keep_end(uint64_t goroutine, uint64_t task, const char *name)
{
    bool lost;
    lock_mutex(&kept.lock);
    lost = !has_ended(goroutine) && !append_end(goroutine, task, name ? name : "");
    pthread_mutex_unlock(&kept.lock);
    if (lost)
        count(&tracer.stats.lost_events);
}

/* Removes the first kept end that belongs to the goroutine's innermost region. */
static bool take_end(trail_g *g, struct end *taken)
{
    bool found = false;
    lock_mutex(&kept.lock);
    for (struct end **link = &kept.buckets[g->id % BUCKETS]; *link && !found;) {
        struct end *end = *link;
        *taken = *end;
        found = end->goroutine == g->id && has_region(g) && pop_region(g, end->mark);
        if (!found) {
            link = &end->next;
            continue;
        }
        *link = end->next;
        end->next = kept.free;
        kept.free = end;
        __atomic_fetch_sub(&regions_kept, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&kept.lock);
    return found;
}

/* MARK: Events */

static void write_end(trail_m *m, uint64_t generation, uint64_t task, uint64_t id, uint64_t stack)
{
    if (tracer.v2)
        V2(m, generation, UserRegionEnd, task, id, stack);
    else
        V1(m, generation, UserRegion, task, 1, id, stack);
}

void regions_write_kept(trail_m *m, uint64_t generation)
{
    struct end end;
    if (!generation || tracer.format < 11 || !runs_goroutine(m, generation))
        return;
    while (take_end(m->g, &end))
        write_end(m, generation, end.task, string_id(m, generation, (const char *)end.name->data),
                  0);
}

static void begin_region(trail_m *m, uint64_t generation, uint64_t task, const char *name,
                         uint64_t stack)
{
    const struct table_entry *entry = string_intern(m, generation, name);
    uint64_t id = entry ? entry->id : 0;
    regions_settle(m, generation);
    push_region(m->g, region_mark(task, entry), name);
    if (tracer.v2)
        V2(m, generation, UserRegionBegin, task, id, stack);
    else
        V1(m, generation, UserRegion, task, 0, id, stack);
}

/* Returns false if the region is not the innermost one. */
static bool end_region(trail_m *m, uint64_t generation, uint64_t task, const char *name,
                       uint64_t stack)
{
    const struct table_entry *entry = string_intern(m, generation, name);
    regions_settle(m, generation);
    if (!pop_region(m->g, region_mark(task, entry)))
        return false;
    write_end(m, generation, task, entry ? entry->id : 0, stack);
    regions_settle(m, generation);
    return true;
}

static void not_innermost(const trail_m *m)
{
    misuse_of(TRAIL_MISUSE_NESTING, m, "trail_region_end",
              "it is not the innermost region of the goroutine");
}

/* An unannounced thread keeps running while it has a region open. */
static void close_begin(trail_m *m, uint64_t generation)
{
    if (unlikely(m->own_ != NULL))
        context_keep(m);
    close_annotation(m, generation);
}

static void close_end(trail_m *m, uint64_t generation)
{
    if (unlikely(m->own_ != NULL) && !has_region(m->g)) {
        context_keep(m);
        context_pause(m, generation);
    }
    close_annotation(m, generation);
}

void trail_region_begin_(uint64_t task, const char *name)
{
    uint64_t generation;
    trail_m *m = open_region(&generation, "trail_region_begin");
    RECORD_OUTSIDE_UNLESS(m, region_begin, task, name);
    begin_region(m, generation, task, name, stack_id(stack_here(m, generation, 0)));
    close_begin(m, generation);
}

void trail_region_end_(uint64_t task, const char *name)
{
    uint64_t generation;
    trail_m *m = open_region(&generation, "trail_region_end");
    RECORD_OUTSIDE_UNLESS(m, region_end, task, name);
    if (!end_region(m, generation, task, name, stack_id(stack_here(m, generation, 0))))
        not_innermost(m);
    close_end(m, generation);
}

void trail_scope_begin_(struct trail_scope_ *scope)
{
    uint64_t generation;
    trail_m *m = open_region(&generation, "trail_region_begin");
    RECORD_OUTSIDE_UNLESS(m, region_begin, scope->task, scope->name);
    scope->goroutine = m->g->id;
    scope->session = tracer.first_generation;
    begin_region(m, generation, scope->task, scope->name, stack_id(stack_here(m, generation, 0)));
    close_begin(m, generation);
}

/*
 * Whether the scope's region belongs to the goroutine in which the thread would end it. A region
 * that began while nothing was recorded belongs to whichever goroutine runs.
 */
static bool is_for(trail_m *m, const struct trail_scope_ *scope)
{
    const trail_g *g = has_goroutine(m) ? m->g : thread_own_goroutine(m);
    if (!scope->goroutine)
        return m->own_ || has_goroutine(m);
    return g->id == scope->goroutine;
}

void trail_scope_end_(const struct trail_scope_ *scope)
{
    uint64_t generation;
    bool of_session;
    trail_m *m = open_any(&generation);
    RECORD_OUTSIDE_UNLESS(m, region_end, scope->task, scope->name);
    of_session = scope->session == tracer.first_generation;
    if (is_for(m, scope) && (runs_goroutine(m, generation) ||
                             (m = context_borrow(m, &generation, "trail_region_end")) != NULL)) {
        bool ended = end_region(m, generation, scope->task, scope->name,
                                stack_id(stack_here(m, generation, 0)));
        if (!ended && of_session)
            not_innermost(m);
        close_end(m, generation);
        return;
    }
    if (!m)
        return;
    if (of_session)
        keep_end(scope->goroutine, scope->task, scope->name);
    section_leave(m);
}
