/*
 * v2: begins and ends generations (§7.6, §7.7), one thread at a time, which holds `control`.
 *
 * Ending N: claim the goroutines that wait or are ready and had no event in N; store N + 1; wait
 * until all sections of N are over; write for every idle M what it runs and holds; take its
 * buffers; write samples, stacks and strings of N. Other threads write to N + 1 during this.
 */
#include "tracer/alloc.h"
#include "tracer/context.h"
#include "tracer/control.h"
#include "tracer/event.h"
#include "tracer/flight.h"
#include "tracer/read.h"
#include "tracer/roster.h"
#include "tracer/sample.h"
#include "tracer/states.h"
#include "tracer/tables.h"

/* MARK: The first batch of a generation: frequency and clocks (§5.1) */

static void write_sync(uint64_t generation)
{
    struct trail_writer_ writer = {0};
    struct timespec wall;
    if (!v2_open_batch(&writer, generation, V2_NO_THREAD, EVENT_MAX))
        return;
    if (tracer.format >= 25)
        *writer.at++ = V2_Sync;
    *writer.at++ = V2_Frequency;
    writer.at = put(writer.at, CLOCK_UNITS_A_SECOND);
    if (tracer.format >= 25) {
        clock_gettime(CLOCK_REALTIME, &wall);
        *writer.at++ = V2_ClockSnapshot;
        writer.at = put(writer.at, 1);
        writer.at = put(writer.at, clock_ns(CLOCK_MONOTONIC));
        writer.at = put(writer.at, (uint64_t)wall.tv_sec);
        writer.at = put(writer.at, (uint64_t)wall.tv_nsec);
    }
    writer_flush(&writer);
}

/* MARK: Goroutines without events */

struct claims {
    uint64_t generation;
    struct trail_writer_ writer;
    size_t goroutines; /* that the host has listed */
};

static void claim_one(trail_g *g, void *arg)
{
    struct claims *claims = arg;
    if (!check_g(NULL, g, "each_goroutine"))
        return;
    states_claim(g, claims->generation, &claims->writer);
    claims->goroutines++;
}

static void claim_of(trail_m *m, void *arg)
{
    struct claims *claims = arg;
    states_claim(thread_own_goroutine(m), claims->generation, &claims->writer);
}

/* Claims the library's own goroutines that no thread runs, and a P. */
static void claim_own(struct claims *claims)
{
    roster_visit(claim_of, claims);
    pthread_mutex_lock(&tracer.ps_lock);
    states_claim_proc(claims->generation, &claims->writer);
    pthread_mutex_unlock(&tracer.ps_lock);
}

static void carry_one(trail_g *g, void *arg)
{
    if (is_initialized_g(g))
        states_carry_stack(g, *(const uint64_t *)arg);
}

static void each_goroutine(void (*visit)(trail_g *g, void *arg), void *arg)
{
    const trail_host *host = live_host();
    if (!host->each_goroutine)
        return;
    host->each_goroutine(host->context, visit, arg);
    if (!tracer.walked)
        tracer_watch_exit();
    tracer.walked = true;
}

/* MARK: Ms */

/* Visits even unused records: a thread that ended left what it wrote. */
static void close_m(trail_m *m, void *arg)
{
    struct claims *claims = arg;
    uint64_t generation = claims->generation;
    if (__atomic_load_n(&m->in_use_, __ATOMIC_ACQUIRE) && m->closed_ < generation) {
        states_close(m, generation, &claims->writer);
        v2_close_batch(&claims->writer);
    }
    writer_flush(&m->writers_[generation & 1]);
    writer_flush(&m->strings_[generation & 1]);
}

static void close_all(struct claims *claims)
{
    wait_for_sections();
    roster_visit_all(close_m, claims);
}

static void write_early(trail_m *m, void *generation)
{
    states_write_early(m, *(const uint64_t *)generation);
}

static size_t count_ms(void)
{
    size_t n = 0;
    for (uint32_t at = 0; roster_next(&at);)
        n++;
    return n;
}

/*
 * Reserves the buffers for the end of the next generation, which may need a status for every
 * goroutine of this one and for everything that an M holds and owns. Returns false if there is no
 * memory.
 */
static bool reserve_next(size_t goroutines, size_t *buffers)
{
    size_t statuses = goroutines + 3 * count_ms();
    *buffers = RESERVE_GENERATION + statuses * EVENT_MAX / BUFFER_CAPACITY;
    return queue_reserve(*buffers);
}

static void count_one(trail_g *g, void *arg)
{
    (void)g;
    ++*(size_t *)arg;
}

/* The same for the first generation, on top of RESERVE_GENERATION. */
static void reserve_first(void)
{
    size_t goroutines = 0, buffers;
    each_goroutine(count_one, &goroutines);
    if (!reserve_next(goroutines, &buffers))
        session_lacks_memory();
    else
        tracer.generation_reserve += buffers;
}

/* MARK: Ending */

/* Writes the rest of a generation that no thread writes to any more. */
static void finish(uint64_t generation, struct claims *claims)
{
    v2_close_batch(&claims->writer);
    close_all(claims);
    writer_flush(&claims->writer);
    sample_drain(generation);
    alloc_write_tables(generation);
    if (__atomic_load_n(&tracer.generation, __ATOMIC_RELAXED))
        each_goroutine(carry_one, &generation);
    if (!queue_spoiled(generation) &&
        (!tracer.has_constants[generation & 1] || !v2_write_tables(generation)))
        queue_spoil(generation);
    queue_complete(generation);
    table_reset(stack_table(generation));
    table_reset(string_table(generation));
    v2_intern_constants(generation);
    count(&tracer.stats.generations);
}

/*
 * Stores the next generation while no world is stopped. Returns false if that does not happen
 * within about a second, or if the trace has failed.
 */
static bool switch_to(uint64_t next)
{
    for (int tries = 0; tries < 1000; tries++) {
        pthread_mutex_lock(&tracer.switching);
        if (!tracer.stopper || !next) {
            bool switched = set_generation(tracer.last_generation, next);
            pthread_mutex_unlock(&tracer.switching);
            return switched;
        }
        pthread_mutex_unlock(&tracer.switching);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return false;
}

/*
 * What the flight recorder keeps may begin with this generation, and readers accept a collection
 * under way only in the first (§6.5). If no thread has run a goroutine in it, this one runs its own
 * for the event.
 */
static void announce_collection(uint64_t generation)
{
    bool kept;
    pthread_mutex_lock(&tracer.lock);
    kept = flight_on();
    pthread_mutex_unlock(&tracer.lock);
    trail_m *m = kept && gc_is_unannounced(generation) ? section_open(&generation) : NULL;
    if (m)
        m = context_borrow(m, &generation, "trail_advance");
    if (!m)
        return;
    states_announce(m, generation);
    context_return(m, generation);
    section_leave(m);
}

bool v2_advance(void)
{
    uint64_t generation = tracer.last_generation;
    struct claims claims = {generation, {0}, 0};
    size_t next_reserve;
    bool ended;
    if (!__atomic_load_n(&tracer.generation, __ATOMIC_RELAXED) || !queue_open(generation + 1))
        return false;
    queue_urgent(true);
    announce_collection(generation);
    write_sync(generation + 1);
    each_goroutine(claim_one, &claims);
    claim_own(&claims);
    if (!reserve_next(claims.goroutines, &next_reserve))
        session_lacks_memory();
    ended = switch_to(generation + 1);
    if (ended) {
        tracer.last_generation = generation + 1;
        finish(generation, &claims);
        queue_unreserve(tracer.generation_reserve);
        tracer.generation_reserve = next_reserve;
    } else {
        /*
         * The generation continues because the world stays stopped, or the trace has ended by
         * itself: the next one is not needed.
         */
        writer_flush(&claims.writer);
        queue_withdraw(generation + 1);
    }
    queue_urgent(false);
    return ended;
}

void v2_session_begin(void)
{
    __atomic_store_n(&tracer.announced, 0, __ATOMIC_RELAXED);
    for (uint64_t i = 0; i < 2; i++)
        v2_intern_constants(i);
    if (!tracer.has_constants[0] || !tracer.has_constants[1])
        session_lacks_memory();
    reserve_first();
    write_sync(tracer.first_generation);
    (void)set_generation(0, tracer.first_generation);
    /* Threads that saw the tracer off may still be changing states; none does after this. */
    wait_for_sections();
    if (tracer.alloc_free)
        alloc_begin(tracer.first_generation);
}

void v2_session_end(void)
{
    uint64_t generation = tracer.last_generation;
    struct claims claims = {generation, {0}, 0};
    each_goroutine(claim_one, &claims);
    claim_own(&claims);
    roster_visit(write_early, &generation);
    (void)switch_to(0);
    finish(generation, &claims);
}
