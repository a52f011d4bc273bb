#include "write/event_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "read/maker.h"
#include "wire/wire.h"
#include "write/anonymize.h"
#include "write/trace_model.h"
#include "write/v2_writer.h"

/* Times of v1 begin with 0, and its Sync stands before: readers take no time below 1. */
#define V1_SHIFT_NS 2

/* An added record stands so long before the event that needs it, if there is room. */
#define AHEAD_NS INT64_C(2)

/* Threads of v1 that are known by what they run only. */
#define THREAD_OF_G (INT64_C(1) << 40)
#define THREAD_OF_P (INT64_C(1) << 41)

/* Readers count in doubles. */
#define FAR_NS (INT64_C(1) << 53)

/* A generation of v1 begins after so many events, where the trace has a pause or not. */
#define DUE_EVENTS     (UINT64_C(512) << 10)
#define OVERDUE_EVENTS (2 * DUE_EVENTS)

/*
 * Of several traces each has addresses of its own, since for readers one address is one frame: the
 * trace's number is in front, and a start function with a label has other addresses than one without.
 */
#define ORIGIN_PC_SHIFT 57
#define ROOT_PC         (UINT64_C(1) << 56)
#define PC_MASK         (ROOT_PC - 1)

_Static_assert(((uint64_t)EVENT_WRITER_ORIGINS - 1) << ORIGIN_PC_SHIFT >> ORIGIN_PC_SHIFT ==
                   EVENT_WRITER_ORIGINS - 1,
               "the number fits");

/* The ID in the trace that is written, of a handle of the other; good in one life of the tables. */
struct known_id {
    uint64_t life, id;
};

struct known_ids {
    struct known_id *ids;
    size_t count, capacity;
};

/* One of the traces that events come from: its texts and stacks, as the trace that is written has them. */
struct origin {
    trail_reader *reader;
    uint64_t life, epoch; /* of the tables */
    struct known_ids strings, stacks, reasons;
    trail_string label; /* stands in front of the names of start functions; empty: nothing does */
    uint64_t pc_bits;   /* addresses of different programs are different */
    bool late;          /* begins after the first: what it has then comes to be */
};

struct event_writer {
    struct v2_writer *out;
    struct origin *origins;
    size_t origin_count;
    struct origin *from; /* of the event at hand */
    int version;
    bool begun; /* before that events only change the model */
    bool initial;
    bool part; /* not all goroutines' events come */
    struct trace_model model;
    int64_t shift_ns;
    int64_t last_ns;    /* of the record written last, as readers will show it */
    int64_t time_ns;    /* of the event at hand */
    int64_t implied_ns; /* of a ProcSteal that the event behind it implies; 0: none */
    int64_t begin_ns;
    struct anonymizer anonymizer;
    struct event_writer_helper helper;
    struct event_writer_last_words *last_words;
    bool helper_held; /* its P goes on from one use to the next */
    uint64_t generation_events;
    trail_error err;
    struct event_writer_stats stats;
};

/* MARK: Tables */

static struct known_id *known(struct event_writer *w, struct known_ids *ids, uint32_t handle)
{
    if (handle < ids->count)
        return &ids->ids[handle];
    size_t wanted = (size_t)handle + 1;
    if (!GROW(ids->ids, ids->capacity, wanted)) {
        w->model.no_memory = true;
        return NULL;
    }
    memset(ids->ids + ids->count, 0, (ids->capacity - ids->count) * sizeof *ids->ids);
    ids->count = ids->capacity;
    return &ids->ids[handle];
}

/* A text that the program chose. */
static uint64_t string_id(struct event_writer *w, trail_string_handle handle)
{
    struct stand_in room;
    if (handle == 0 || !w->begun)
        return 0;
    struct known_id *id = known(w, &w->from->strings, handle);
    if (!id || id->life == w->from->life)
        return id ? id->id : 0;
    trail_string text = trail_reader_string(w->from->reader, handle);
    if (w->anonymizer.on)
        text = anonymize_text(&w->anonymizer, text, &room);
    *id = (struct known_id){w->from->life, v2_writer_string(w->out, text)};
    return id->id;
}

static uint64_t reason_text_id(struct event_writer *w, trail_string text)
{
    struct stand_in room;
    if (w->anonymizer.on)
        text = anonymize_reason(&w->anonymizer, text, &room);
    return v2_writer_string(w->out, text);
}

/* A text that is mostly the runtime's. */
static uint64_t reason_id(struct event_writer *w, trail_string_handle handle)
{
    if (handle == 0 || !w->begun)
        return 0;
    struct known_id *id = known(w, &w->from->reasons, handle);
    if (id && id->life != w->from->life)
        *id = (struct known_id){w->from->life,
                                reason_text_id(w, trail_reader_string(w->from->reader, handle))};
    return id ? id->id : 0;
}

/* The start function with the label in front of it; the runtime's own are known by their names. */
static void label_root(const struct origin *origin, struct v2_frame *root, char *room)
{
    trail_string name = root->function, label = origin->label;
    size_t left = V2_MAX_STRING - label.size;
    if (label.size == 0 || trail_is_system_goroutine(name))
        return;
    name.size = name.size < left ? name.size : left;
    memcpy(room, label.data, label.size);
    memcpy(room + label.size, name.data, name.size);
    root->function = (trail_string){room, label.size + name.size};
    root->pc |= ROOT_PC;
}

static uint64_t new_stack_id(struct event_writer *w, trail_stack_handle handle)
{
    char room[V2_MAX_STRING];
    struct v2_frame frames[V2_MAX_FRAMES];
    struct stand_in rooms[V2_MAX_FRAMES][2];
    size_t count;
    const trail_frame *from = trail_reader_stack(w->from->reader, handle, &count);
    if (count > V2_MAX_FRAMES)
        count = V2_MAX_FRAMES;
    for (size_t i = 0; i < count; i++)
        frames[i] = (struct v2_frame){
            .pc = w->origin_count > 1 ? (from[i].pc & PC_MASK) | w->from->pc_bits : from[i].pc,
            .function = trail_reader_string(w->from->reader, from[i].function),
            .file = trail_reader_string(w->from->reader, from[i].file),
            .line = from[i].line,
        };
    for (size_t i = 0; i < count && w->anonymizer.on; i++)
        anonymize_frame(&w->anonymizer, &frames[i].function, &frames[i].file, rooms[i]);
    if (count > 0)
        label_root(w->from, &frames[count - 1], room);
    return v2_writer_stack(w->out, frames, count);
}

static uint64_t stack_id(struct event_writer *w, trail_stack_handle handle)
{
    if (handle == 0 || !w->begun)
        return 0;
    struct known_id *id = known(w, &w->from->stacks, handle);
    if (id && id->life != w->from->life)
        *id = (struct known_id){w->from->life, new_stack_id(w, handle)};
    return id ? id->id : 0;
}

/* Ranges have whole names; on the wire is what is in the brackets. */
static uint64_t stw_kind_id(struct event_writer *w, trail_string_handle name)
{
    trail_string text = trail_reader_string(w->from->reader, name);
    const char *open = text.size > 0 ? memchr(text.data, '(', text.size) : NULL;
    if (!w->begun || !open)
        return 0;
    open++;
    size_t left = text.size - (size_t)(open - text.data);
    return reason_text_id(w, (trail_string){open, left > 0 ? left - 1 : 0});
}

/* MARK: Records */

static bool send_at(struct event_writer *w, const struct model_m *m, int64_t time_ns, unsigned type,
                    unsigned count, const uint64_t *args)
{
    uint64_t thread = m->id == TRAIL_NONE ? V2_NO_THREAD : (uint64_t)m->id;
    if (time_ns <= w->last_ns)
        time_ns = w->last_ns + 1;
    w->last_ns = time_ns;
    return v2_writer_event(w->out, thread, time_ns, type, count, args);
}

/* Writes the event at hand. */
static bool send(struct event_writer *w, struct model_m *m, unsigned type, unsigned count,
                 const uint64_t *args)
{
    m->seen = true;
    if (!w->begun)
        return true;
    w->stats.events++;
    return send_at(w, m, w->time_ns, type, count, args);
}

/* Writes a record in front of it. */
static void add(struct event_writer *w, struct model_m *m, unsigned type, unsigned count,
                const uint64_t *args)
{
    m->seen = true;
    if (!w->begun)
        return;
    w->stats.added++;
    (void)send_at(w, m, w->time_ns - AHEAD_NS, type, count, args);
}

#define SEND(w, m, type, ...)                                                                      \
    send(w, m, type, (unsigned)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)),             \
         (const uint64_t[]){__VA_ARGS__})
#define ADD0(w, m, type) add(w, m, type, 0, NULL)
#define ADD(w, m, type, ...)                                                                       \
    add(w, m, type, (unsigned)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)),              \
        (const uint64_t[]){__VA_ARGS__})

static uint64_t next_number(struct model_seq *seq)
{
    return ++seq->n;
}

static uint64_t next_gc(struct trace_model *model)
{
    return ++model->gc_seq;
}

/* MARK: Announcing */

static bool runs(const struct model_p *p)
{
    return p->status == V2_PROC_RUNNING || p->status == V2_PROC_SYSCALL;
}

static void announce_p(struct event_writer *w, struct model_p *p)
{
    struct model_m *m = runs(p) ? model_thread_of_p(&w->model, p) : NULL;
    m = m ? m : &w->model.nobody;
    ADD(w, m, V2_ProcStatus, (uint64_t)p->id, p->status);
    p->seq = (struct model_seq){w->model.generation, 0};
    if (p->sweeps)
        ADD(w, m, V2_GCSweepActive, (uint64_t)p->id);
}

static struct model_m *thread_named_after(struct event_writer *w, int64_t base, int64_t id)
{
    return model_m(&w->model, base | (id & (base - 1)));
}

static void announce_g(struct event_writer *w, struct model_g *g)
{
    bool bound = g->status == V2_GO_RUNNING || g->status == V2_GO_SYSCALL;
    struct model_m *m = bound ? model_thread_of_g(&w->model, g) : &w->model.nobody;
    if (!m && g->status == V2_GO_SYSCALL) {
        m = thread_named_after(w, THREAD_OF_G, g->id);
        if (!w->initial || m->g_id != TRAIL_NONE)
            return; /* nothing can be told of it any more */
        model_bind_g(m, g);
    }
    m = m ? m : &w->model.nobody;
    ADD(w, m, V2_GoStatus, (uint64_t)g->id, (uint64_t)m->id, g->status);
    g->seq = (struct model_seq){w->model.generation, 0};
    if (g->assists)
        ADD(w, m, V2_GCMarkAssistActive, (uint64_t)g->id);
}

static bool is_ready_p(struct event_writer *w, struct model_p *p)
{
    if (p->seq.generation != w->model.generation)
        announce_p(w, p);
    return true;
}

static bool is_ready_g(struct event_writer *w, struct model_g *g)
{
    if (g->seq.generation != w->model.generation)
        announce_g(w, g);
    return g->seq.generation == w->model.generation;
}

/* An M on which a goroutine runs, which can tell of what it likes; NULL if there is none. */
static struct model_m *any_running(struct event_writer *w)
{
    const struct idmap *gs = &w->model.gs;
    for (size_t i = 0; gs->slots && i <= gs->mask; i++) {
        const struct model_g *g = gs->slots[i].value;
        struct model_m *m =
            g && g->status == V2_GO_RUNNING ? model_thread_of_g(&w->model, g) : NULL;
        if (m && m->p_id != TRAIL_NONE)
            return m;
    }
    return NULL;
}

static void announce_gc(struct event_writer *w)
{
    struct model_m *m = w->initial ? &w->model.nobody : any_running(w);
    if (w->model.gc == MODEL_GC_ON && m)
        ADD(w, m, V2_GCActive, next_gc(&w->model));
    else if (w->initial && w->model.gc != MODEL_GC_ON)
        w->model.gc = MODEL_GC_UNDETERMINED;
}

static void announce_all(struct event_writer *w)
{
    struct trace_model *model = &w->model;
    for (size_t i = 0; model->ps.slots && i <= model->ps.mask; i++)
        if (model->ps.slots[i].value)
            announce_p(w, model->ps.slots[i].value);
    for (size_t i = 0; model->gs.slots && i <= model->gs.mask; i++)
        if (model->gs.slots[i].value)
            announce_g(w, model->gs.slots[i].value);
    announce_gc(w);
}

static uint64_t to_announce(const struct event_writer *w)
{
    return 2 * (w->model.gs.count + w->model.ps.count) + 2;
}

/* MARK: Generations */

static trail_clock_snapshot clocks_at(int64_t time_ns, const trail_clock_snapshot *known)
{
    const int64_t second = 1000000000;
    if (!known)
        return (trail_clock_snapshot){
            .trace_ns = time_ns,
            .mono_ns = (uint64_t)time_ns,
            .wall_s = time_ns / second,
            .wall_ns = (uint32_t)(time_ns % second),
        };
    /* Unsigned, because a hostile file may have times at both ends of the range. */
    int64_t since = (int64_t)((uint64_t)time_ns - (uint64_t)known->trace_ns);
    int64_t ns = since % second + known->wall_ns, whole = since / second;
    if (ns < 0) {
        ns += second;
        whole--;
    }
    return (trail_clock_snapshot){
        .trace_ns = time_ns,
        .mono_ns = known->mono_ns + (uint64_t)since,
        .wall_s = (int64_t)((uint64_t)known->wall_s + (uint64_t)whole + (uint64_t)(ns / second)),
        .wall_ns = (uint32_t)(ns % second),
    };
}

static void put_experiments(struct event_writer *w)
{
    const trail_experiment_batch *batches;
    size_t count = trail_reader_experiment_batches(w->from->reader, &batches);
    /* Nobody knows what is in those of other experiments. */
    for (size_t i = 0; i < count && w->version >= 23; i++)
        if (!w->anonymizer.on || batches[i].experiment == V2_EXPERIMENT_ALLOC_FREE)
            v2_writer_experiment(w->out, batches[i].experiment, (uint64_t)batches[i].thread,
                                 batches[i].data, batches[i].size);
}

/* Of traces of different makers the words for people are those of the format: Go's. */
static void put_maker(struct event_writer *w)
{
    const trail_maker *maker = trail_reader_maker(w->origins[0].reader);
    for (size_t i = 1; i < w->origin_count; i++)
        if (!maker_equal(maker, trail_reader_maker(w->origins[i].reader)))
            return;
    v2_writer_maker(w->out, maker);
}

/* When it begins, so that what is announced is told before the event. */
static int64_t begin_time(const struct event_writer *w, bool announce)
{
    int64_t before_ns = announce ? (int64_t)to_announce(w) + AHEAD_NS : 0;
    int64_t begin_ns = w->time_ns - before_ns;
    if (!announce || (w->model.gs.count == 0 && w->model.ps.count == 0))
        begin_ns = w->time_ns;
    return begin_ns > 1 ? begin_ns : 1;
}

void event_writer_begin(struct event_writer *w, int64_t time_ns, const trail_clock_snapshot *clocks,
                        bool announce)
{
    if (w->stats.generations > 0)
        v2_writer_end(w->out);
    w->time_ns = (int64_t)((uint64_t)time_ns + (uint64_t)w->shift_ns);
    w->begin_ns = begin_time(w, announce);
    bool here = clocks && w->begin_ns == w->time_ns && clocks->trace_ns > 0;
    trail_clock_snapshot now = here ? *clocks : clocks_at(w->begin_ns, clocks);
    if (now.trace_ns < w->begin_ns)
        w->begin_ns = now.trace_ns;
    v2_writer_begin_before(w->out, w->begin_ns, &now);
    w->last_ns = w->begin_ns > w->last_ns ? w->begin_ns : w->last_ns + 1;
    w->stats.generations++;
    w->generation_events = 0;
    w->initial = w->stats.generations == 1;
    w->begun = true;
    for (size_t i = 0; i < w->origin_count; i++)
        w->origins[i].life++;
    w->model.generation++;
    put_maker(w);
    put_experiments(w);
    if (w->initial)
        model_forget_begun(&w->model);
    if (announce) {
        w->time_ns = w->last_ns; /* as early as can be */
        announce_all(w);
    }
}

void event_writer_last(struct event_writer *w, int64_t time_ns, const trail_clock_snapshot *clocks)
{
    const struct idmap *ps = &w->model.ps;
    size_t i = 0;
    if (!w->begun || time_ns + w->shift_ns <= w->last_ns || ps->count == 0 ||
        event_writer_failed(w))
        return;
    event_writer_begin(w, time_ns - 1, clocks, false); /* its Sync is an event too */
    w->time_ns += 1 + AHEAD_NS;
    while (!ps->slots[i].value)
        i++;
    announce_p(w, ps->slots[i].value);
}

bool event_writer_is_due(const struct event_writer *w, int64_t time_ns)
{
    if (w->generation_events < DUE_EVENTS || w->model.stopped_worlds > 0)
        return false;
    int64_t pause_ns = time_ns + w->shift_ns - w->last_ns;
    return w->generation_events >= OVERDUE_EVENTS ||
           pause_ns > (int64_t)to_announce(w) + 2 * AHEAD_NS;
}

bool event_writer_is_far(const struct event_writer *w, int64_t time_ns)
{
    return time_ns + w->shift_ns - w->begin_ns >= FAR_NS / 2 && w->model.stopped_worlds == 0;
}

/* MARK: Contexts */

static bool is_real(int64_t proc)
{
    return proc != TRAIL_NONE && proc < TRAIL_FAKE_PROC;
}

static bool met(const struct model_m *m, const trail_event *e, unsigned needs)
{
    if (m->id == TRAIL_NONE)
        return needs == 0;
    if ((needs & V2_NEED_P) && (m->p_id == TRAIL_NONE || (is_real(e->proc) && m->p_id != e->proc)))
        return false;
    if ((needs & V2_NEED_G) &&
        (m->g_id == TRAIL_NONE || (e->goroutine != TRAIL_NONE && m->g_id != e->goroutine)))
        return false;
    return !((needs & V2_NEED_NO_G) && m->g_id != TRAIL_NONE);
}

/* A P that events of v1 use although nobody started it: it is on `m`, or on a thread of its own. */
static struct model_m *take_proc(struct event_writer *w, int64_t id, struct model_m *m)
{
    struct model_p *p = model_find_p(&w->model, id);
    if (m->id == TRAIL_NONE || m->p_id != TRAIL_NONE)
        m = thread_named_after(w, THREAD_OF_P, id);
    if (m->id == TRAIL_NONE || m->p_id != TRAIL_NONE || (p && p->status != V2_PROC_IDLE))
        return NULL;
    if (!p) {
        p = model_add_p(&w->model, id, V2_PROC_RUNNING);
        if (!p)
            return NULL;
        ADD(w, m, V2_ProcStatus, (uint64_t)id, V2_PROC_RUNNING);
    } else {
        (void)is_ready_p(w, p);
        ADD(w, m, V2_ProcStart, (uint64_t)id, next_number(&p->seq));
        p->status = V2_PROC_RUNNING;
    }
    model_bind_p(m, p);
    return m;
}

/* In v1 the P counts, and who runs there; threads are found by what is bound to them. */
static __attribute__((noinline)) struct model_m *
other_context(struct event_writer *w, const trail_event *e, unsigned needs, struct model_m *m)
{
    struct model_g *g = e->goroutine == TRAIL_NONE ? NULL : model_find_g(&w->model, e->goroutine);
    struct model_m *of_g = g ? model_thread_of_g(&w->model, g) : NULL, *of_p = NULL;
    if (is_real(e->proc)) {
        const struct model_p *p = model_find_p(&w->model, e->proc);
        of_p = p ? model_thread_of_p(&w->model, p) : NULL;
        if (!of_p && !(needs & V2_NEED_G))
            of_p = take_proc(w, e->proc, m);
    }
    if (!(needs & V2_NEED_G))
        return of_p ? of_p : of_g && of_g->p_id != TRAIL_NONE ? of_g : NULL;
    if (of_g && of_g->p_id != TRAIL_NONE)
        return of_g;
    return of_p && of_p->g_id != TRAIL_NONE ? of_p : NULL;
}

/* The M on which the event can be told; NULL if there is none. */
static inline struct model_m *context(struct event_writer *w, const trail_event *e, unsigned needs)
{
    struct model_m *m = model_m(&w->model, e->thread);
    return met(m, e, needs) ? m : other_context(w, e, needs, m);
}

/* The same, and its goroutine is in that state. */
static struct model_m *context_in(struct event_writer *w, const trail_event *e, unsigned needs,
                                  unsigned status, struct model_g **g)
{
    struct model_m *m = context(w, e, needs);
    *g = m ? model_g_of(&w->model, m) : NULL;
    return *g && (*g)->status == status ? m : NULL;
}

/* MARK: Ps */

static bool put_proc_status(struct event_writer *w, const trail_event *e)
{
    bool running = e->transition.to == TRAIL_PROC_RUNNING;
    unsigned status = e->transition.status;
    if (status == 0)
        status = running ? V2_PROC_RUNNING : V2_PROC_IDLE;
    struct model_m *m = model_m(&w->model, e->thread);
    struct model_p *p = model_find_p(&w->model, e->transition.id);
    bool of_v1 = e->transition.status == 0;
    if (p && of_v1 && model_thread_of_p(&w->model, p))
        m = model_thread_of_p(&w->model, p); /* known already, as of a trace that began later */
    else if (running && of_v1 && (m->id == TRAIL_NONE || m->p_id != TRAIL_NONE))
        m = thread_named_after(w, THREAD_OF_P, e->transition.id);
    if (p && p->status != status)
        return false;
    /* A P that comes later to a thread which begins with another one. */
    if (!p && w->from->late && status != V2_PROC_IDLE && m->p_id != TRAIL_NONE)
        return false;
    if (!p && !(p = model_add_p(&w->model, e->transition.id, status)))
        return false;
    p->seq = (struct model_seq){w->model.generation, 0};
    if (runs(p))
        model_bind_p(m, p);
    return SEND(w, m, V2_ProcStatus, (uint64_t)p->id, status);
}

static bool put_proc_start(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = model_m(&w->model, e->thread);
    struct model_p *p = model_find_p(&w->model, e->transition.id);
    if (m->id == TRAIL_NONE || m->p_id != TRAIL_NONE)
        m = thread_named_after(w, THREAD_OF_P, e->transition.id);
    if (!p || p->status != V2_PROC_IDLE || m->id == TRAIL_NONE || m->p_id != TRAIL_NONE ||
        !is_ready_p(w, p))
        return false;
    p->status = V2_PROC_RUNNING;
    model_bind_p(m, p);
    return SEND(w, m, V2_ProcStart, (uint64_t)p->id, next_number(&p->seq));
}

static bool put_proc_stop(struct event_writer *w, const trail_event *e)
{
    struct model_p *p = model_find_p(&w->model, e->transition.id);
    struct model_m *m = p ? model_thread_of_p(&w->model, p) : NULL;
    if (!m || m->id == TRAIL_NONE || !runs(p))
        return false;
    p->status = V2_PROC_IDLE;
    model_bind_p(m, NULL);
    return send(w, m, V2_ProcStop, 0, NULL);
}

static bool put_proc_steal(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = model_m(&w->model, e->thread);
    struct model_p *p = model_find_p(&w->model, e->transition.id);
    if (e->flags & TRAIL_EVENT_IMPLIED) {
        w->implied_ns = w->time_ns;
        return true;
    }
    if (w->part && p && p->status == V2_PROC_RUNNING)
        return put_proc_stop(w, e);
    if (w->part && p && p->status == V2_PROC_IDLE)
        return true;
    if (!p || m->id == TRAIL_NONE || !is_ready_p(w, p))
        return false;
    struct model_m *victim = model_thread_of_p(&w->model, p);
    uint64_t from = V2_NO_THREAD;
    if (p->status == V2_PROC_SYSCALL && victim && victim->seen) {
        from = (uint64_t)victim->id;
        model_bind_p(victim, NULL);
    } else if (p->status != V2_PROC_ABANDONED) {
        return false;
    }
    p->status = V2_PROC_IDLE;
    return SEND(w, m, V2_ProcSteal, (uint64_t)p->id, next_number(&p->seq), from);
}

/* MARK: System calls */

/* v1: the P did not leave the goroutine's thread, and is still told to be in the call. */
static void free_proc(struct event_writer *w, struct model_m *m)
{
    struct model_p *p = model_p_of(&w->model, m);
    if (!p || p->status != V2_PROC_SYSCALL)
        return;
    (void)is_ready_p(w, p);
    ADD(w, m, V2_ProcSteal, (uint64_t)p->id, p->seq.n + 1, (uint64_t)m->id);
    ADD(w, m, V2_ProcStart, (uint64_t)p->id, p->seq.n + 2);
    p->seq.n += 2;
    p->status = V2_PROC_RUNNING;
}

static bool put_syscall_begin(struct event_writer *w, const trail_event *e)
{
    struct model_g *g;
    struct model_m *m = context_in(w, e, V2_NEED_USER_GO, V2_GO_RUNNING, &g);
    struct model_p *p = m ? model_p_of(&w->model, m) : NULL;
    if (!p || !is_ready_p(w, p))
        return false;
    g->status = V2_GO_SYSCALL;
    p->status = V2_PROC_SYSCALL;
    return SEND(w, m, V2_GoSyscallBegin, next_number(&p->seq), stack_id(w, e->stack));
}

static bool put_syscall_end(struct event_writer *w, const trail_event *e)
{
    struct model_g *g;
    struct model_m *m = context_in(w, e, V2_NEED_USER_GO, V2_GO_SYSCALL, &g);
    struct model_p *p = m ? model_p_of(&w->model, m) : NULL;
    if (!p || p->status != V2_PROC_SYSCALL)
        return false;
    g->status = V2_GO_RUNNING;
    p->status = V2_PROC_RUNNING;
    return send(w, m, V2_GoSyscallEnd, 0, NULL);
}

static struct model_m *leave_syscall(struct event_writer *w, struct model_g *g)
{
    struct model_m *m = g && g->status == V2_GO_SYSCALL ? model_thread_of_g(&w->model, g) : NULL;
    if (!m || m->id == TRAIL_NONE)
        return NULL;
    free_proc(w, m);
    g->status = V2_GO_RUNNABLE;
    model_bind_g(m, NULL);
    return m;
}

static bool put_syscall_end_blocked(struct event_writer *w, const trail_event *e)
{
    struct model_g *g = model_find_g(&w->model, e->transition.id);
    if (g && g->left) {
        g->left = false;
        return true;
    }
    struct model_m *m = leave_syscall(w, g);
    return m && send(w, m, V2_GoSyscallEndBlocked, 0, NULL);
}

static bool put_create_syscall(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = context(w, e, V2_NEED_M | V2_NEED_NO_G);
    if (!m || m->g_id != TRAIL_NONE || model_find_g(&w->model, e->transition.id))
        return false;
    struct model_g *g = model_add_g(&w->model, e->transition.id, V2_GO_SYSCALL);
    if (!g)
        return false;
    model_bind_g(m, g);
    return SEND(w, m, V2_GoCreateSyscall, (uint64_t)g->id);
}

static bool put_destroy_syscall(struct event_writer *w, const trail_event *e)
{
    struct model_g *g;
    struct model_m *m = context_in(w, e, V2_NEED_M | V2_NEED_G, V2_GO_SYSCALL, &g);
    struct model_p *p = m ? model_p_of(&w->model, m) : NULL;
    if (!m || (p && p->status != V2_PROC_SYSCALL))
        return false;
    model_remove_g(&w->model, g);
    model_bind_g(m, NULL);
    if (w->implied_ns)
        w->time_ns = w->implied_ns;
    bool sent = send(w, m, V2_GoDestroySyscall, 0, NULL);
    if (p) {
        p->status = V2_PROC_ABANDONED;
        model_bind_p(m, NULL);
        w->last_ns++;
    }
    return sent;
}

/* MARK: Goroutines */

/* Makes known a goroutine that was not there in the first generation, and is in none of its events. */
static struct model_g *introduce_g(struct event_writer *w, int64_t id, unsigned status,
                                   struct model_m *m)
{
    struct model_m *by = any_running(w);
    if (status == V2_GO_RUNNING && m->id != TRAIL_NONE && m->p_id != TRAIL_NONE &&
        m->g_id == TRAIL_NONE)
        by = m;
    bool blocked = status == V2_GO_WAITING;
    if (!by || status == V2_GO_SYSCALL || (blocked && w->version < 23))
        return NULL;
    struct model_g *g = model_add_g(&w->model, id, blocked ? V2_GO_WAITING : V2_GO_RUNNABLE);
    if (g)
        ADD(w, by, blocked ? V2_GoCreateBlocked : V2_GoCreate, (uint64_t)id, 0, 0);
    if (g && status == V2_GO_RUNNING && by == m) {
        ADD(w, m, V2_GoStart, (uint64_t)id, next_number(&g->seq));
        g->status = V2_GO_RUNNING;
        model_bind_g(m, g);
    }
    return g;
}

static unsigned status_of(unsigned state)
{
    static const uint8_t statuses[TRAIL_GO_STATES] = {
        [TRAIL_GO_RUNNABLE] = V2_GO_RUNNABLE,
        [TRAIL_GO_RUNNING] = V2_GO_RUNNING,
        [TRAIL_GO_WAITING] = V2_GO_WAITING,
        [TRAIL_GO_SYSCALL] = V2_GO_SYSCALL,
    };
    return state < TRAIL_GO_STATES ? statuses[state] : V2_GO_BAD;
}

/* The M of a goroutine in a system call; its status may be told by nobody, which shows as no P. */
static struct model_m *syscall_thread(struct event_writer *w, const trail_event *e, int64_t id)
{
    struct model_m *m = model_m(&w->model, e->thread);
    if (m->id == TRAIL_NONE)
        m = thread_named_after(w, THREAD_OF_G, id);
    bool may_be_new = w->initial || w->from->late;
    if (m->g_id == id || (may_be_new && m->g_id == TRAIL_NONE) || !w->begun)
        return m;
    return NULL;
}

static void helper_stop(struct event_writer *w, struct model_m *m)
{
    struct model_p *p = m ? model_p_of(&w->model, m) : NULL;
    if (!p)
        return;
    ADD0(w, m, V2_ProcStop);
    p->status = V2_PROC_IDLE;
    model_bind_p(m, NULL);
}

/* The helper's P on a thread that has none. */
static struct model_m *helper_on(struct event_writer *w, struct model_m *m)
{
    struct model_p *p = model_find_p(&w->model, w->helper.proc);
    if (p && model_thread_of_p(&w->model, p) == m)
        return m;
    if (p && p->status == V2_PROC_RUNNING)
        helper_stop(w, model_thread_of_p(&w->model, p));
    if (!p) {
        p = model_add_p(&w->model, w->helper.proc, V2_PROC_RUNNING);
        if (p)
            ADD(w, m, V2_ProcStatus, (uint64_t)p->id, V2_PROC_RUNNING);
    } else {
        (void)is_ready_p(w, p);
        ADD(w, m, V2_ProcStart, (uint64_t)p->id, next_number(&p->seq));
        p->status = V2_PROC_RUNNING;
    }
    model_bind_p(m, p);
    return m;
}

/* The helper's thread, with its P and no goroutine; it needs none to create or wake others. */
static struct model_m *helper_begin(struct event_writer *w)
{
    return helper_on(w, model_m(&w->model, w->helper.thread));
}

static void helper_end(struct event_writer *w, struct model_m *m)
{
    if (!w->helper_held)
        helper_stop(w, m);
}

static void helper_create(struct event_writer *w, const struct model_g *g, uint64_t stack)
{
    bool blocked = g->status == V2_GO_WAITING;
    struct model_m *by = helper_begin(w);
    ADD(w, by, blocked ? V2_GoCreateBlocked : V2_GoCreate, (uint64_t)g->id, stack, 0);
    helper_end(w, by);
}

static void start_on(struct event_writer *w, struct model_m *m, struct model_g *g)
{
    ADD(w, m, V2_GoStart, (uint64_t)g->id, next_number(&g->seq));
    g->status = V2_GO_RUNNING;
    model_bind_g(m, g);
}

/* A P is taken by the helper's thread from one in a system call, or from nobody. */
static void steal_p(struct event_writer *w, struct model_p *p, struct model_m *from)
{
    if (!is_ready_p(w, p))
        return;
    ADD(w, model_m(&w->model, w->helper.thread), V2_ProcSteal, (uint64_t)p->id,
        next_number(&p->seq), from ? (uint64_t)from->id : V2_NO_THREAD);
    p->status = V2_PROC_IDLE;
    if (from)
        model_bind_p(from, NULL);
}

/*
 * In a system call. Where the thread has its P still, the goroutine comes from C, as it were; else it
 * goes into the call with the helper's P, and loses that: readers tell the two apart.
 */
static void introduce_in_call(struct event_writer *w, struct model_m *m, struct model_g *g,
                              uint64_t stack)
{
    if (m->p_id != TRAIL_NONE) {
        model_bind_g(m, g);
        ADD(w, m, V2_GoCreateSyscall, (uint64_t)g->id);
        return;
    }
    helper_create(w, g, stack);
    struct model_p *p = model_p_of(&w->model, helper_on(w, m));
    start_on(w, m, g);
    if (!p)
        return; /* no memory */
    ADD(w, m, V2_GoSyscallBegin, next_number(&p->seq), stack);
    g->status = V2_GO_SYSCALL;
    p->status = V2_PROC_SYSCALL;
    steal_p(w, p, m);
}

/* A goroutine that its trace had from the beginning on, which this trace has not. */
static bool introduce_late_g(struct event_writer *w, const trail_event *e, unsigned status,
                             struct model_m *m)
{
    bool waits = status == V2_GO_WAITING,
         bound = status == V2_GO_SYSCALL || status == V2_GO_RUNNING;
    if (bound && (m->id == TRAIL_NONE || m->g_id != TRAIL_NONE))
        return false;
    if (status == V2_GO_RUNNING && m->p_id == TRAIL_NONE)
        return false;
    uint64_t stack = stack_id(w, e->stack);
    struct model_g *g =
        model_add_g(&w->model, e->transition.id, waits ? V2_GO_WAITING : V2_GO_RUNNABLE);
    if (!g)
        return false;
    if (status == V2_GO_SYSCALL) {
        g->status = V2_GO_SYSCALL;
        introduce_in_call(w, m, g, stack);
        return true;
    }
    helper_create(w, g, stack);
    if (status == V2_GO_RUNNING)
        start_on(w, m, g);
    return true;
}

static bool put_go_status(struct event_writer *w, const trail_event *e)
{
    int64_t id = e->transition.id;
    unsigned status = status_of(e->transition.to);
    struct model_g *g = model_find_g(&w->model, id);
    struct model_m *m = model_m(&w->model, e->thread), *of = m;
    if (g && g->early && status == V2_GO_WAITING)
        status = V2_GO_RUNNABLE;
    if (g && g->status != status)
        return false;
    if (status == V2_GO_SYSCALL && !(of = syscall_thread(w, e, id)))
        return false;
    if (!g && w->begun && w->from->late)
        return introduce_late_g(w, e, status, of);
    if (!g && w->begun && !w->initial)
        return introduce_g(w, id, status, m) != NULL;
    if (!g && !(g = model_add_g(&w->model, id, status)))
        return false;
    g->seq = (struct model_seq){w->model.generation, 0};
    if (status == V2_GO_RUNNING || status == V2_GO_SYSCALL)
        model_bind_g(of, g);
    if (status == V2_GO_SYSCALL) {
        m = e->proc == of->p_id || !of->seen ? of : &w->model.nobody;
        of->seen = true;
    }
    if (e->wire == V2_GoStatusStack && w->version >= 23)
        return SEND(w, m, V2_GoStatusStack, (uint64_t)id, (uint64_t)of->id, status,
                    stack_id(w, e->stack));
    return SEND(w, m, V2_GoStatus, (uint64_t)id, (uint64_t)of->id, status);
}

static bool put_go_create(struct event_writer *w, const trail_event *e)
{
    bool blocked = e->wire == V2_GoCreateBlocked, early = blocked && w->version < 23;
    struct model_m *m = context(w, e, V2_NEED_M | V2_NEED_P);
    const struct model_g *by = m ? model_g_of(&w->model, m) : NULL;
    if (!m || (by && by->status != V2_GO_RUNNING) || model_find_g(&w->model, e->transition.id))
        return false;
    struct model_g *g = model_add_g(&w->model, e->transition.id,
                                    blocked && !early ? V2_GO_WAITING : V2_GO_RUNNABLE);
    if (!g)
        return false;
    g->early = early;
    return SEND(w, m, early ? V2_GoCreate : e->wire, (uint64_t)g->id,
                stack_id(w, e->transition.stack), stack_id(w, e->stack));
}

/* In v1 a goroutine may be put aside long before it is said that its call is over. */
static bool is_free(struct event_writer *w, struct model_m *m)
{
    struct model_g *g = model_g_of(&w->model, m);
    if (m->g_id == TRAIL_NONE)
        return true;
    if (!g || !leave_syscall(w, g))
        return false;
    add(w, m, V2_GoSyscallEndBlocked, 0, NULL);
    g->left = true;
    return true;
}

static bool put_go_start(struct event_writer *w, const trail_event *e)
{
    struct model_g *g = model_find_g(&w->model, e->transition.id);
    if (!g || g->status != V2_GO_RUNNABLE || !is_ready_g(w, g))
        return false;
    struct model_m *m = context(w, e, V2_NEED_M | V2_NEED_P);
    if (!m || !is_free(w, m) || m->p_id == TRAIL_NONE)
        return false;
    g->status = V2_GO_RUNNING;
    model_bind_g(m, g);
    return SEND(w, m, V2_GoStart, (uint64_t)g->id, next_number(&g->seq));
}

static bool put_go_destroy(struct event_writer *w, const trail_event *e)
{
    struct model_g *g;
    struct model_m *m = context_in(w, e, V2_NEED_USER_GO, V2_GO_RUNNING, &g);
    if (!m)
        return false;
    model_remove_g(&w->model, g);
    model_bind_g(m, NULL);
    return send(w, m, V2_GoDestroy, 0, NULL);
}

/* GoStop and GoBlock. */
static bool put_go_stop(struct event_writer *w, const trail_event *e)
{
    struct model_g *g;
    struct model_m *m = context_in(w, e, V2_NEED_USER_GO, V2_GO_RUNNING, &g);
    if (!m)
        return false;
    g->status = e->wire == V2_GoStop ? V2_GO_RUNNABLE : V2_GO_WAITING;
    model_bind_g(m, NULL);
    return SEND(w, m, e->wire, reason_id(w, e->transition.reason), stack_id(w, e->stack));
}

static bool put_go_unblock(struct event_writer *w, const trail_event *e)
{
    struct model_g *g = model_find_g(&w->model, e->transition.id);
    if (!g || g->status != V2_GO_WAITING || !is_ready_g(w, g)) {
        bool early = g && g->early;
        if (early)
            g->early = false;
        return early;
    }
    struct model_m *m = model_m(&w->model, e->thread);
    g->status = V2_GO_RUNNABLE;
    return SEND(w, m, V2_GoUnblock, (uint64_t)g->id, next_number(&g->seq), stack_id(w, e->stack));
}

/* In 1.22 the three events are written that it stands for: this is the first. */
static bool put_go_switch(struct event_writer *w, const trail_event *e)
{
    if (w->version < 23)
        return put_go_unblock(w, e);
    struct model_g *g, *next = model_find_g(&w->model, e->transition.id);
    struct model_m *m = context_in(w, e, V2_NEED_USER_GO, V2_GO_RUNNING, &g);
    if (!m || !next || next->status != V2_GO_WAITING || !is_ready_g(w, next))
        return false;
    if (e->wire == V2_GoSwitch)
        g->status = V2_GO_WAITING;
    else
        model_remove_g(&w->model, g);
    next->status = V2_GO_RUNNING;
    model_bind_g(m, next);
    bool sent = SEND(w, m, e->wire, (uint64_t)next->id, next_number(&next->seq));
    w->last_ns += 2;
    return sent;
}

static bool put_label(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = context(w, e, V2_NEED_USER_GO);
    return m && SEND(w, m, V2_GoLabel, string_id(w, e->label.text));
}

/* MARK: Metrics and ranges */

static bool put_metric(struct event_writer *w, const trail_event *e)
{
    bool procs = e->wire == V2_ProcsChange;
    struct model_m *m = context(w, e, procs ? V2_NEED_USER_GO : V2_NEED_M | V2_NEED_P);
    if (!m)
        return false;
    if (procs)
        return SEND(w, m, e->wire, e->metric.value, stack_id(w, e->stack));
    return SEND(w, m, e->wire, e->metric.value);
}

static bool put_stw(struct event_writer *w, const trail_event *e)
{
    bool begin = e->wire == V2_STWBegin;
    struct model_m *m = context(w, e, V2_NEED_USER_GO);
    struct model_g *g = m ? model_g_of(&w->model, m) : NULL;
    if (!g || g->stops_world == begin)
        return false;
    g->stops_world = begin;
    w->model.stopped_worlds += begin ? 1 : (size_t)-1;
    if (!begin)
        return send(w, m, V2_STWEnd, 0, NULL);
    return SEND(w, m, V2_STWBegin, stw_kind_id(w, e->range.name), stack_id(w, e->stack));
}

static bool put_mark_assist(struct event_writer *w, const trail_event *e)
{
    bool begin = e->wire == V2_GCMarkAssistBegin;
    struct model_m *m = context(w, e, V2_NEED_USER_GO);
    struct model_g *g = m ? model_g_of(&w->model, m) : NULL;
    if (!g || (begin && g->assists))
        return false;
    if (!begin && !g->assists) {
        if (!w->initial)
            return false;
        ADD(w, m, V2_GCMarkAssistActive, (uint64_t)g->id);
    }
    g->assists = begin;
    if (!begin)
        return send(w, m, V2_GCMarkAssistEnd, 0, NULL);
    return SEND(w, m, V2_GCMarkAssistBegin, stack_id(w, e->stack));
}

/* Whether "active" can be told of a range: new in the first generation, known in any other. */
static bool may_be_active(const struct event_writer *w, bool is)
{
    return !w->begun || is != w->initial;
}

static bool begin_late_assist(struct event_writer *w, struct model_g *g)
{
    struct model_m *m = g->status == V2_GO_RUNNING ? model_thread_of_g(&w->model, g) : NULL;
    if (!m || m->p_id == TRAIL_NONE)
        return false; /* waits in it, which cannot be told */
    g->assists = true;
    ADD(w, m, V2_GCMarkAssistBegin, 0);
    return true;
}

static bool put_assist_active(struct event_writer *w, const trail_event *e)
{
    struct model_g *g = model_find_g(&w->model, e->range.scope_id);
    if (g && !g->assists && w->from->late)
        return begin_late_assist(w, g);
    if (!g || !may_be_active(w, g->assists || w->from->late))
        return false;
    g->assists = true;
    return SEND(w, model_m(&w->model, e->thread), V2_GCMarkAssistActive, (uint64_t)g->id);
}

static bool put_sweep(struct event_writer *w, const trail_event *e)
{
    bool begin = e->wire == V2_GCSweepBegin;
    struct model_m *m = context(w, e, V2_NEED_M | V2_NEED_P);
    struct model_p *p = m ? model_p_of(&w->model, m) : NULL;
    if (!p || p->sweeps == begin)
        return false;
    p->sweeps = begin;
    if (begin)
        return SEND(w, m, V2_GCSweepBegin, stack_id(w, e->stack));
    return SEND(w, m, V2_GCSweepEnd, e->range.swept_bytes, e->range.reclaimed_bytes);
}

static bool begin_late_sweep(struct event_writer *w, struct model_p *p)
{
    struct model_m *m = model_thread_of_p(&w->model, p);
    if (!m || m->id == TRAIL_NONE)
        return false;
    p->sweeps = true;
    ADD(w, m, V2_GCSweepBegin, 0);
    return true;
}

static bool put_sweep_active(struct event_writer *w, const trail_event *e)
{
    struct model_p *p = model_find_p(&w->model, e->range.scope_id);
    if (p && !p->sweeps && w->from->late)
        return begin_late_sweep(w, p);
    if (!p || !may_be_active(w, p->sweeps || w->from->late))
        return false;
    p->sweeps = true;
    return SEND(w, model_m(&w->model, e->thread), V2_GCSweepActive, (uint64_t)p->id);
}

static bool put_gc_active(struct event_writer *w, const trail_event *e)
{
    struct trace_model *model = &w->model;
    bool free = w->initial || !w->begun;
    if (w->begun && model->gc != (w->initial ? MODEL_GC_UNDETERMINED : MODEL_GC_ON))
        return false;
    struct model_m *m = free ? model_m(model, e->thread) : context(w, e, V2_NEED_USER_GO);
    if (!m)
        return false;
    model->gc = MODEL_GC_ON;
    return SEND(w, m, V2_GCActive, next_gc(model));
}

static bool put_gc(struct event_writer *w, const trail_event *e)
{
    struct trace_model *model = &w->model;
    bool begin = e->wire == V2_GCBegin;
    struct model_m *m = context(w, e, V2_NEED_USER_GO);
    if (!m || (begin ? model->gc == MODEL_GC_ON : model->gc != MODEL_GC_ON))
        return false;
    model->gc = begin ? MODEL_GC_ON : MODEL_GC_OFF;
    if (begin)
        return SEND(w, m, V2_GCBegin, next_gc(model), stack_id(w, e->stack));
    return SEND(w, m, V2_GCEnd, next_gc(model));
}

/* MARK: Annotations, samples, experiments */

static bool put_task(struct event_writer *w, const trail_event *e)
{
    bool begin = e->wire == V2_UserTaskBegin;
    struct model_m *m = context(w, e, V2_NEED_USER_GO);
    if (!m || (begin && !model_task_begin(&w->model, e->task.id)))
        return false;
    uint64_t parent = e->task.parent == TRAIL_NO_TASK ? TRAIL_BACKGROUND_TASK : e->task.parent;
    if (begin)
        return SEND(w, m, V2_UserTaskBegin, e->task.id, parent, string_id(w, e->task.type),
                    stack_id(w, e->stack));
    idmap_remove(&w->model.tasks, e->task.id);
    return SEND(w, m, V2_UserTaskEnd, e->task.id, stack_id(w, e->stack));
}

static bool put_region(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = context(w, e, V2_NEED_USER_GO);
    struct model_g *g = m ? model_g_of(&w->model, m) : NULL;
    trail_string name = trail_reader_string(w->from->reader, e->region.type);
    if (name.size > V2_MAX_STRING)
        name.size = V2_MAX_STRING;
    if (!g ||
        !(e->wire == V2_UserRegionBegin ? model_region_begin(&w->model, g, e->region.task, name)
                                        : model_region_end(g, e->region.task, name)))
        return false;
    return SEND(w, m, e->wire, e->region.task, string_id(w, e->region.type), stack_id(w, e->stack));
}

static bool put_log(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = context(w, e, V2_NEED_USER_GO);
    return m && SEND(w, m, V2_UserLog, e->log.task, string_id(w, e->log.category),
                     string_id(w, e->log.message), stack_id(w, e->stack));
}

static bool put_sample(struct event_writer *w, const trail_event *e)
{
    if (!w->begun)
        return true;
    w->stats.events++;
    w->last_ns = w->time_ns > w->last_ns ? w->time_ns : w->last_ns + 1;
    return v2_writer_sample(
        w->out, w->last_ns, (uint64_t)e->thread, is_real(e->proc) ? (uint64_t)e->proc : V2_NO_PROC,
        e->goroutine == TRAIL_NONE ? 0 : (uint64_t)e->goroutine, stack_id(w, e->stack));
}

static bool put_experimental(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = context(w, e, V2_NEED_M);
    return m && w->version >= 23 && send(w, m, e->wire, e->experimental.args, e->experimental.arg);
}

/* MARK: Dispatch */

static bool put(struct event_writer *w, const trail_event *e)
{
    switch (e->wire) {
    case V2_ProcStatus:
        return put_proc_status(w, e);
    case V2_ProcStart:
        return put_proc_start(w, e);
    case V2_ProcStop:
        return put_proc_stop(w, e);
    case V2_ProcSteal:
        return put_proc_steal(w, e);
    case V2_GoStatus:
    case V2_GoStatusStack:
        return put_go_status(w, e);
    case V2_GoCreate:
    case V2_GoCreateBlocked:
        return put_go_create(w, e);
    case V2_GoStart:
        return put_go_start(w, e);
    case V2_GoDestroy:
        return put_go_destroy(w, e);
    case V2_GoStop:
    case V2_GoBlock:
        return put_go_stop(w, e);
    case V2_GoUnblock:
        return put_go_unblock(w, e);
    case V2_GoSwitch:
    case V2_GoSwitchDestroy:
        return put_go_switch(w, e);
    case V2_GoSyscallBegin:
        return put_syscall_begin(w, e);
    case V2_GoSyscallEnd:
        return put_syscall_end(w, e);
    case V2_GoSyscallEndBlocked:
        return put_syscall_end_blocked(w, e);
    case V2_GoCreateSyscall:
        return put_create_syscall(w, e);
    case V2_GoDestroySyscall:
        return put_destroy_syscall(w, e);
    case V2_GoLabel:
        return put_label(w, e);
    case V2_ProcsChange:
    case V2_HeapAlloc:
    case V2_HeapGoal:
        return put_metric(w, e);
    case V2_STWBegin:
    case V2_STWEnd:
        return put_stw(w, e);
    case V2_GCActive:
        return put_gc_active(w, e);
    case V2_GCBegin:
    case V2_GCEnd:
        return put_gc(w, e);
    case V2_GCSweepActive:
        return put_sweep_active(w, e);
    case V2_GCSweepBegin:
    case V2_GCSweepEnd:
        return put_sweep(w, e);
    case V2_GCMarkAssistActive:
        return put_assist_active(w, e);
    case V2_GCMarkAssistBegin:
    case V2_GCMarkAssistEnd:
        return put_mark_assist(w, e);
    case V2_UserTaskBegin:
    case V2_UserTaskEnd:
        return put_task(w, e);
    case V2_UserRegionBegin:
    case V2_UserRegionEnd:
        return put_region(w, e);
    case V2_UserLog:
        return put_log(w, e);
    case V2_CPUSample:
        return put_sample(w, e);
    default:
        return put_experimental(w, e);
    }
}

/* Of the three events of a switch the first is written, but for 1.22 (see put_go_switch). */
static bool is_implied(const struct event_writer *w, const trail_event *e)
{
    return (e->flags & TRAIL_EVENT_IMPLIED) && e->wire != V2_ProcSteal && w->version >= 23;
}

void event_writer_put(struct event_writer *w, const trail_event *e)
{
    if (is_implied(w, e)) {
        w->stats.events += w->begun;
        return;
    }
    uint64_t epoch = trail_reader_epoch(w->from->reader);
    w->from->life += epoch != w->from->epoch;
    w->from->epoch = epoch;
    w->time_ns = (int64_t)((uint64_t)e->time_ns + (uint64_t)w->shift_ns);
    w->generation_events++;
    if (w->begun && (w->time_ns < 0 || w->time_ns - w->begin_ns >= FAR_NS))
        error_set(&w->err, TRAIL_UNSUPPORTED, "a generation of over 104 days");
    else if (!put(w, e) && w->begun && !w->helper_held) /* else it comes again */
        w->stats.left_out++;
    if (!(e->wire == V2_ProcSteal && (e->flags & TRAIL_EVENT_IMPLIED)))
        w->implied_ns = 0;
    w->model.nobody.g_id = w->model.nobody.p_id = TRAIL_NONE;
}

bool event_writer_failed(const struct event_writer *w)
{
    return w->err.code != TRAIL_OK || w->model.no_memory || v2_writer_failed(w->out);
}

/* MARK: Several traces */

long event_writer_add_origin(struct event_writer *w, trail_reader *reader, trail_string label)
{
    size_t number = w->origin_count;
    struct origin *grown =
        number < EVENT_WRITER_ORIGINS ? reallocarray(w->origins, number + 1, sizeof *grown) : NULL;
    if (!grown) {
        w->model.no_memory = true;
        return -1;
    }
    w->origins = grown;
    w->origins[number] = (struct origin){
        .reader = reader,
        .label = label.size <= EVENT_WRITER_LABEL ? label : (trail_string){"", 0},
        .pc_bits = (uint64_t)number << ORIGIN_PC_SHIFT,
    };
    w->origin_count++;
    w->from = &w->origins[0];
    return (long)number;
}

void event_writer_from(struct event_writer *w, size_t number)
{
    w->from = &w->origins[number];
    w->model.origin = (uint8_t)number;
}

void event_writer_set_several(struct event_writer *w, const struct event_writer_helper *helper)
{
    w->helper = *helper;
    w->shift_ns = 0;
}

void event_writer_set_late(struct event_writer *w)
{
    w->from->late = true;
}

void event_writer_hold(struct event_writer *w, bool hold)
{
    w->helper_held = hold;
    const struct model_p *p = model_find_p(&w->model, w->helper.proc);
    if (!hold && p && p->status == V2_PROC_RUNNING)
        helper_stop(w, model_thread_of_p(&w->model, p));
}

void event_writer_system(struct event_writer *w, int64_t time_ns, unsigned type, uint64_t value)
{
    static const char text[] = "trail merge";
    w->time_ns = time_ns;
    struct model_m *m = helper_begin(w);
    if (type == V2_HeapAlloc || type == V2_HeapGoal) {
        ADD(w, m, type, value);
        helper_end(w, m);
        return;
    }
    const struct v2_frame frame = {.pc = PC_MASK, .function = {text, sizeof text - 1}};
    uint64_t stack = v2_writer_stack(w->out, &frame, 1);
    struct model_seq seq = {w->model.generation, 0};
    ADD(w, m, V2_GoCreate, (uint64_t)w->helper.goroutine, stack, 0);
    ADD(w, m, V2_GoStart, (uint64_t)w->helper.goroutine, next_number(&seq));
    if (type == V2_ProcsChange)
        ADD(w, m, type, value, 0);
    else if (type == V2_GCBegin)
        ADD(w, m, type, next_gc(&w->model), 0);
    else
        ADD(w, m, type, next_gc(&w->model));
    ADD0(w, m, V2_GoDestroy);
    w->helper.goroutine++;
    if (type != V2_ProcsChange)
        w->model.gc = type == V2_GCBegin ? MODEL_GC_ON : MODEL_GC_OFF;
    helper_end(w, m);
}

/* What only a goroutine can tell, by the first that ends. */
static void tell_last_words(struct event_writer *w, struct model_m *m)
{
    struct event_writer_last_words *words = w->last_words;
    if (!words)
        return;
    w->last_words = NULL;
    if (words->procs_change)
        ADD(w, m, V2_ProcsChange, words->procs, 0);
    if (words->gc_end) {
        ADD(w, m, V2_GCEnd, next_gc(&w->model));
        w->model.gc = MODEL_GC_OFF;
    }
}

/* The goroutine runs on `m`, and ends. */
static void end_g(struct event_writer *w, struct model_m *m, struct model_g *g)
{
    if (g->stops_world)
        ADD0(w, m, V2_STWEnd);
    if (g->assists)
        ADD0(w, m, V2_GCMarkAssistEnd);
    tell_last_words(w, m);
    ADD0(w, m, V2_GoDestroy);
    model_remove_g(&w->model, g);
    model_bind_g(m, NULL);
}

/* A goroutine that is bound to a thread. False: it is not. */
static bool end_bound_g(struct event_writer *w, struct model_g *g)
{
    struct model_m *m = model_thread_of_g(&w->model, g);
    bool in_call = g->status == V2_GO_SYSCALL;
    if (!m || m->id == TRAIL_NONE || (!in_call && g->status != V2_GO_RUNNING))
        return false;
    if (!in_call) {
        end_g(w, m, g);
        return true;
    }
    struct model_p *p = model_p_of(&w->model, m);
    if (p && p->status == V2_PROC_SYSCALL)
        steal_p(w, p, m);
    if (m->p_id != TRAIL_NONE || g->seq.generation != w->model.generation)
        return true; /* stays in its call */
    ADD0(w, m, V2_GoDestroySyscall);
    model_remove_g(&w->model, g);
    model_bind_g(m, NULL);
    return true;
}

/* One that waits or is ready, on the helper's P. */
static void end_free_g(struct event_writer *w, struct model_m *m, struct model_g *g)
{
    if (g->status == V2_GO_SYSCALL || g->status == V2_GO_RUNNING || !is_ready_g(w, g))
        return;
    if (g->status == V2_GO_WAITING)
        ADD(w, m, V2_GoUnblock, (uint64_t)g->id, next_number(&g->seq), 0);
    start_on(w, m, g);
    end_g(w, m, g);
}

static void end_p(struct event_writer *w, struct model_p *p)
{
    struct model_m *m = runs(p) ? model_thread_of_p(&w->model, p) : NULL;
    if (p->status == V2_PROC_ABANDONED) {
        steal_p(w, p, NULL);
    } else if (m && m->id != TRAIL_NONE && p->status == V2_PROC_SYSCALL) {
        steal_p(w, p, m);
    } else if (m && m->id != TRAIL_NONE) {
        if (p->sweeps)
            ADD(w, m, V2_GCSweepEnd, 0, 0);
        p->sweeps = false;
        ADD0(w, m, V2_ProcStop);
        p->status = V2_PROC_IDLE;
        model_bind_p(m, NULL);
    }
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The IDs of those of one origin, ascending; to be freed. */
static int64_t *ids_of(struct event_writer *w, const struct idmap *map, unsigned origin,
                       bool of_goroutines, size_t *count)
{
    int64_t *ids = calloc(map->count + 1, sizeof *ids);
    *count = 0;
    if (!ids)
        w->model.no_memory = true;
    for (size_t i = 0; ids && map->slots && i <= map->mask; i++) {
        const void *value = map->slots[i].value;
        if (value && (of_goroutines ? ((const struct model_g *)value)->origin
                                    : ((const struct model_p *)value)->origin) == origin)
            ids[(*count)++] = (int64_t)map->slots[i].id;
    }
    if (ids)
        qsort(ids, *count, sizeof *ids, compare_ids);
    return ids;
}

void event_writer_leave(struct event_writer *w, size_t number, int64_t time_ns,
                        struct event_writer_last_words *words)
{
    size_t count;
    w->time_ns = time_ns;
    event_writer_from(w, number);
    words->gc_end = words->gc_end && w->model.gc == MODEL_GC_ON;
    w->last_words = words->procs_change || words->gc_end ? words : NULL;
    int64_t *ids = ids_of(w, &w->model.gs, (unsigned)number, true, &count);
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        if (!end_bound_g(w, model_find_g(&w->model, ids[i])))
            ids[left++] = ids[i];
    struct model_m *m = left > 0 ? helper_begin(w) : NULL;
    for (size_t i = 0; i < left; i++)
        end_free_g(w, m, model_find_g(&w->model, ids[i]));
    if (m)
        helper_end(w, m);
    free(ids);
    ids = ids_of(w, &w->model.ps, (unsigned)number, false, &count);
    for (size_t i = 0; i < count; i++)
        if (ids[i] != w->helper.proc)
            end_p(w, model_find_p(&w->model, ids[i]));
    free(ids);
    if (w->last_words && words->procs_change)
        event_writer_system(w, time_ns, V2_ProcsChange, words->procs);
    if (w->last_words && words->gc_end)
        event_writer_system(w, time_ns, V2_GCEnd, 0);
    w->last_words = NULL;
}

/* MARK: Opening and closing */

struct event_writer *event_writer_open(int version, trail_reader *reader, trail_string label,
                                       const trail_sink *sink, trail_error *err)
{
    struct event_writer_stats ignored;
    struct event_writer *w = calloc(1, sizeof *w);
    if (!w) {
        error_set(err, TRAIL_NO_MEMORY, "out of memory while converting a trace");
        return NULL;
    }
    w->out = v2_writer_open(version, sink, err);
    if (!w->out) {
        free(w);
        return NULL;
    }
    w->version = version;
    w->shift_ns = trail_version_is_v2(trail_reader_version(reader)) ? 0 : V1_SHIFT_NS;
    error_clear(&w->err);
    model_init(&w->model);
    if (event_writer_add_origin(w, reader, label) < 0) {
        (void)event_writer_close(w, &ignored, err);
        return NULL;
    }
    return w;
}

int event_writer_anonymize(struct event_writer *w, const char *secret, trail_error *err)
{
    return anonymizer_init(&w->anonymizer, secret, err);
}

void event_writer_set_part(struct event_writer *w)
{
    w->part = true;
}

bool event_writer_close(struct event_writer *w, struct event_writer_stats *stats, trail_error *err)
{
    if (w->model.no_memory)
        error_set(&w->err, TRAIL_NO_MEMORY, "out of memory while converting a trace");
    *stats = w->stats;
    bool good = v2_writer_close(w->out, err);
    if (w->err.code != TRAIL_OK) {
        *err = w->err;
        good = false;
    }
    model_fini(&w->model);
    for (size_t i = 0; i < w->origin_count; i++) {
        free(w->origins[i].strings.ids);
        free(w->origins[i].stacks.ids);
        free(w->origins[i].reasons.ids);
    }
    free(w->origins);
    free(w);
    return good;
}
