/* Writes what a replay does as a trace: see schedule.h. */
#include "replay/schedule.h"

#include <stdlib.h>
#include <string.h>
#include <trail/export.h>

#include "base/error.h"
#include "base/idmap.h"
#include "base/text.h"
#include "write/thread_writer.h"

#define VERSION 26

enum state { ABSENT, WAITING, READY, RUNNING, ENDED };

struct player {
    struct written_thread written;
    uint64_t shown; /* number of its steps whose regions and tasks are in the trace */
    uint32_t depth; /* open regions that began in the trace */
    uint8_t state;
};

struct schedule {
    const struct chains *chains;
    struct thread_writer out;
    struct player *players;
    uint32_t *lock_waits; /* by lock: one of its waits; CHAIN_NONE: none */
    const char *what;     /* NULL: the log is written */
    bool failed;          /* out of memory */
};

#define EMIT(s, player, type, ...)                                                                 \
    THREAD_EVENT(&(s)->out, (player)->written.m, thread_writer_tick(&(s)->out), type, __VA_ARGS__)

/* MARK: Texts and stacks, by their IDs in the generation */

static uint64_t text_of(struct schedule *s, trail_name name)
{
    return v2_writer_string(s->out.out, names_text(s->chains->names, name));
}

/* The function's number and the line stand for the address, which is unknown here. */
static struct v2_frame frame_of(const struct names *names, const trail_place *place)
{
    return (struct v2_frame){
        .pc = (UINT64_C(1) << 63) | (uint64_t)place->function << 32 | (uint32_t)place->line,
        .function = names_text(names, place->function),
        .file = names_text(names, place->file),
        .line = (uint64_t)place->line,
    };
}

static uint64_t stack_of(struct schedule *s, trail_stack stack)
{
    struct v2_frame frames[V2_MAX_FRAMES];
    struct stack_row row = stacks_get(s->chains->stacks, stack);
    size_t count = row.count < V2_MAX_FRAMES ? row.count : V2_MAX_FRAMES;
    for (size_t i = 0; i < count; i++)
        frames[i] = frame_of(s->chains->names, &row.places[i]);
    return v2_writer_stack(s->out.out, frames, count);
}

/* Returns the stack that names a goroutine. */
static uint64_t name_of(struct schedule *s, const struct player *player)
{
    const struct chain_thread *thread = &s->chains->threads[player - s->players];
    struct v2_frame frame = frame_of(s->chains->names, &(trail_place){.function = thread->name});
    return frame.function.size == 0 ? 0 : v2_writer_stack(s->out.out, &frame, 1);
}

/* MARK: Generations */

static void begin_generation(struct schedule *s)
{
    static const uint8_t statuses[] = {
        [WAITING] = V2_GO_WAITING, [READY] = V2_GO_RUNNABLE, [RUNNING] = V2_GO_RUNNING};
    struct thread_writer *out = &s->out;
    thread_writer_end(out);
    thread_writer_begin(out, out->now_ns, trail_reader_maker(s->chains->names->reader));
    thread_writer_ps(out);
    for (size_t i = 0; i < s->chains->thread_count; i++) {
        struct player *player = &s->players[i];
        if (player->state != ABSENT && player->state != ENDED)
            thread_writer_status(out, player->state == RUNNING ? player->written.m : V2_NO_THREAD,
                                 &player->written, out->now_ns, statuses[player->state],
                                 name_of(s, player));
    }
    thread_writer_begun(out);
}

static void move_to(struct schedule *s, int64_t ns)
{
    (void)thread_writer_at(&s->out, ns);
    if (s->out.generation == 0 || thread_writer_is_full(&s->out))
        begin_generation(s);
}

/* MARK: Tasks and regions */

static void show_step(struct schedule *s, struct player *player, const struct chain_step *step)
{
    const struct chain_task *task = NULL;
    if (step->op == CHAIN_TASK_BEGIN || step->op == CHAIN_TASK_END)
        task = &s->chains->tasks[step->of];
    switch ((enum chain_op)step->op) {
    case CHAIN_REGION_BEGIN:
        EMIT(s, player, V2_UserRegionBegin, 0, text_of(s, step->of), 0);
        player->depth++;
        break;
    case CHAIN_REGION_END:
        if (player->depth > 0)
            EMIT(s, player, V2_UserRegionEnd, 0, text_of(s, step->of), 0);
        player->depth -= player->depth > 0;
        break;
    case CHAIN_TASK_BEGIN:
        EMIT(s, player, V2_UserTaskBegin, task->id, 0, text_of(s, task->name), 0);
        break;
    case CHAIN_TASK_END:
        EMIT(s, player, V2_UserTaskEnd, task->id, 0);
        break;
    default:
        break;
    }
}

/* Shows what the running thread has begun and ended up to its step `at`. */
static void show_steps(struct schedule *s, struct player *player, uint64_t at)
{
    const struct chain_thread *thread = &s->chains->threads[player - s->players];
    for (; player->shown < at && player->shown < thread->count; player->shown++)
        show_step(s, player, &s->chains->steps[thread->first + player->shown]);
}

/* MARK: States */

/* Returns the wait of a step; CHAIN_NONE if it has none, or it is unknown. */
static uint32_t wait_of(const struct schedule *s, const struct chain_step *why)
{
    switch ((enum chain_op)why->op) {
    case CHAIN_WAIT:
    case CHAIN_DELAY:
    case CHAIN_UNTIL:
    case CHAIN_FINISH:
        return why->of;
    case CHAIN_TAKE:
        return s->lock_waits[why->of];
    default:
        return CHAIN_NONE;
    }
}

static void block(struct schedule *s, const struct player *player, uint32_t wait)
{
    const struct names *names = s->chains->names;
    if (wait == CHAIN_NONE) {
        EMIT(s, player, V2_GoBlock, 0, 0);
        return;
    }
    const struct chain_wait *of = &s->chains->waits[wait];
    const struct wait_facts *facts = wait_facts_of(names, of->name);
    if (facts && facts->kind != WIRE_WAIT_SLEEP)
        EMIT(s, player, V2_UserLog, 0, v2_writer_string(s->out.out, text_from(WIRE_WAIT_CATEGORY)),
             text_of(s, of->name), 0);
    EMIT(s, player, V2_GoBlock, text_of(s, wait_reason(names, of->name)), stack_of(s, of->stack));
}

static void stop(struct schedule *s, struct player *player, const struct replay_event *event)
{
    const struct chain_step *why = event->step;
    show_steps(s, player, event->at);
    if (!why) {
        EMIT(s, player, V2_GoStop, v2_writer_string(s->out.out, text_from("preempted")), 0);
        player->state = READY;
    } else if (why->op == CHAIN_FINISH && s->chains->threads[event->thread].ended) {
        (void)v2_writer_event(s->out.out, player->written.m, thread_writer_tick(&s->out),
                              V2_GoDestroy, 0, NULL);
        player->state = ENDED;
    } else {
        block(s, player, wait_of(s, why));
        player->state = WAITING;
    }
    thread_writer_give_p(&s->out, &player->written, thread_writer_tick(&s->out));
}

static void ready(struct schedule *s, struct player *player, uint32_t by)
{
    const struct player *waker = by == CHAIN_NONE ? NULL : &s->players[by];
    if (player->state != WAITING)
        return;
    thread_writer_unblock(&s->out,
                          waker && waker->state == RUNNING ? waker->written.m : V2_NO_THREAD,
                          &player->written, thread_writer_tick(&s->out), 0);
    player->state = READY;
}

static void create(struct schedule *s, struct player *player, const struct player *creator)
{
    if (player->state != ABSENT || creator->state != RUNNING)
        return;
    EMIT(s, creator, V2_GoCreate, player->written.g, name_of(s, player), 0);
    player->state = READY;
}

static void start(struct schedule *s, struct player *player, uint64_t at)
{
    size_t p = thread_writer_free_p(&s->out);
    if (p == s->out.p_count && !thread_writer_add_ps(&s->out, p + 1)) {
        s->failed = true;
        return;
    }
    thread_writer_take_p(&s->out, &player->written, p, thread_writer_tick(&s->out));
    /* Its creator was not running. */
    if (player->state == ABSENT)
        EMIT(s, player, V2_GoCreate, player->written.g, name_of(s, player), 0);
    thread_writer_start(&s->out, &player->written, thread_writer_tick(&s->out));
    player->state = RUNNING;
    if (s->what)
        EMIT(s, player, V2_UserLog, 0, v2_writer_string(s->out.out, text_from("trail.replay")),
             v2_writer_string(s->out.out, text_from(s->what)), 0);
    s->what = NULL;
    show_steps(s, player, at);
}

/* If it did not get a CPU at once, it was ready. */
static void run(struct schedule *s, struct player *player, const struct replay_event *event)
{
    bool stalls = event->step->op == CHAIN_STALL;
    if (stalls && player->state == RUNNING)
        stop(s, player, &(struct replay_event){.thread = event->thread, .at = event->at});
    else if (!stalls && player->state != RUNNING)
        start(s, player, event->at);
}

/* A thread must be running to begin a wait, or to end. */
static void leave(struct schedule *s, struct player *player, const struct replay_event *event)
{
    bool ends = event->step && s->chains->threads[event->thread].ended;
    if (player->state == WAITING && ends)
        ready(s, player, CHAIN_NONE);
    if (player->state == READY && event->step)
        start(s, player, event->at);
    if (player->state == RUNNING)
        stop(s, player, event);
}

static void see(void *context, const struct replay_event *event)
{
    struct schedule *s = context;
    struct player *player = &s->players[event->thread];
    if (s->failed || player->state == ENDED)
        return;
    move_to(s, event->ns);
    if (event->what == REPLAY_CREATED)
        create(s, player, &s->players[event->by]);
    else if (event->what == REPLAY_READY)
        ready(s, player, event->by);
    else if (event->what == REPLAY_RUNS)
        run(s, player, event);
    else
        leave(s, player, event);
}

/* MARK: All of it */

/* Threads keep their IDs. If several have the same, such as a reused TID, the later ones get other
 * IDs. */
static bool number_players(struct schedule *s)
{
    struct idmap used = {0};
    bool good = true;
    for (size_t i = 0; i < s->chains->thread_count && good; i++) {
        const struct chain_thread *thread = &s->chains->threads[i];
        uint64_t id = (uint64_t)thread->id;
        if (idmap_find(&used, id))
            id = (UINT64_C(1) << 40) + i;
        good = idmap_put(&used, id, s->players);
        s->players[i] = (struct player){.written = {.g = id, .m = id, .p = -1},
                                        .state = thread->created ? ABSENT : WAITING};
    }
    idmap_free(&used);
    return good;
}

static bool prepare(struct schedule *s)
{
    const struct chains *chains = s->chains;
    s->players = calloc(chains->thread_count + 1, sizeof *s->players);
    s->lock_waits = calloc(chains->lock_count + 1, sizeof *s->lock_waits);
    if (!s->players || !s->lock_waits || !number_players(s))
        return false;
    for (size_t i = 0; i < chains->lock_count; i++)
        s->lock_waits[i] = CHAIN_NONE;
    for (size_t i = 0; i < chains->wait_count; i++)
        if (chains->waits[i].lock != CHAIN_NONE)
            s->lock_waits[chains->waits[i].lock] = (uint32_t)i;
    return true;
}

bool schedule_write(const struct chains *chains, const struct change *changes, size_t count,
                    const struct replay_goal *goal, const char *what, const struct trail_sink *sink,
                    trail_error *err)
{
    struct schedule s = {.chains = chains, .what = what};
    struct replay_watch watch = {see, &s};
    struct replay_result result = {0};
    s.out.out = v2_writer_open(VERSION, sink, err);
    if (!s.out.out)
        return false;
    bool good = prepare(&s);
    if (good) {
        move_to(&s, 0);
        good = replay_run(chains, changes, count, goal, &watch, &result) && !s.failed;
    }
    if (!good)
        (void)error_no_memory(err);
    good = v2_writer_close(s.out.out, good ? err : NULL) && good;
    replay_result_free(&result);
    thread_writer_dispose(&s.out);
    free(s.players);
    free(s.lock_waits);
    return good;
}
