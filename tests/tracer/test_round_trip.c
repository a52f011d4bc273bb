/*
 * What goes in comes out: random legal histories of goroutines, Ps and Ms, recorded in every format, read
 * back by libtrail, and compared with a model that knows nothing of the tracer.
 *
 * The model keeps the states that the host's calls make and, while something is recorded, a line for each
 * event that a reader is to deliver. What a format cannot express is projected:
 *
 *   call                        v1 (7, 11, 19, 21)                  22              23, 26
 *   create_blocked              runnable; first unblock left out    as v1           waiting
 *   switch, switch_end          unblock, block or end, start        as v1           one event, read as three
 *   block reason                nine kinds, else ""; 7: no GC one   its text        its text
 *   block_futile                7: it, the wake-up and the start    as block        as block
 *                               are left out
 *   block FOREVER               its end in this trace; then waits   waits           waits
 *   label of a start            from 11 on                          yes             yes
 *   trail_go_label              no                                  yes             yes
 *   syscall_exit                known by what follows; open ones     Syscall->Running
 *                               end with the trace
 *   exit_blocked, P kept        P lost and taken again (all formats)
 *   create_syscall              created runnable, then found in it  NotExist->Syscall
 *   destroy_syscall             ends, if its P was not lost, else   Syscall->NotExist; a P still held is
 *                               nothing                             taken from it, and stolen once more
 *   in a call since the start   its P is idle: exit is a start      Syscall->Running
 *   GC end                      if its begin is in the trace        also if it was under way at the start
 *   assist end                  also if it was under way at the start
 *   assist                      from 11 on                          yes
 *   bytes swept                 from 11 on                          yes
 *   STW kind                    7: one, 11, 19: two; 21: not the    all
 *                               two of traces
 *   tasks, regions, logs        from 11 on                          yes
 *   texts                       whole                               1,024 bytes
 *   CPU samples                 from 19 on, without a thread        yes
 *   AllocFree                   no                                  no              yes
 *
 * v1's order is that of each goroutine and each P; v2's is that of the whole history. Numbers of Ps and heap
 * goals may be repeated by the tracer at any time; only their order is compared.
 *
 * TRAIL_TEST_SEED repeats one history, TRAIL_TEST_COUNT scales how many there are (in percent),
 * TRAIL_TEST_FILTER names the test, TRAIL_TEST_KEEP says where a trace is put that was refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "trace.h"
#include "tracer/tracer.h"
#include "wire/wire.h"
#include "world.h"

#include <sys/mman.h>
#include <unistd.h>

/* MARK: The model */

enum go_state { NONE, RUNNABLE, RUNNING, SYSCALL, WAITING };
enum proc_state { IDLE, HELD, IN_SYSCALL };

struct goroutine {
    trail_g g;
    enum go_state state;
    int m;
    bool seen_runnable; /* waits, but readers take it for runnable */
    bool forever;
    bool woken;      /* in this trace, and has done nothing since it was woken */
    size_t woken_at; /* its line */
    bool in_assist;
    bool since_start;      /* in a system call that began before the trace */
    bool found_in_syscall; /* v1: readers see it in the call only after its creation */
    unsigned regions;
    struct {
        uint64_t task;
        const char *name;
    } region[8];
};

struct proc {
    enum proc_state state;
    int m;
    bool sweeps, sweep_told;
    bool since_start; /* v1: in a system call since before the start */
    uint64_t swept;
};

struct line {
    int64_t subject; /* v1: a goroutine, or -10 - P; 0: the whole trace */
    size_t generation;
    char *text;
};

struct lines {
    struct line *line;
    size_t count, capacity;
};

/* The state of every goroutine when a generation began. */
struct moment {
    uint64_t generation;
    size_t lines;
    uint8_t state[MAX_GOROUTINES];
};

struct values {
    uint64_t value[2048];
    size_t count;
};

struct model {
    struct world world;
    struct goroutine *go;
    size_t go_count;
    struct proc proc[PROCS];
    struct {
        int g, p;
    } m[THREADS];
    int stw_m; /* -1: the world runs */
    unsigned stw_kind;
    bool stw_told;
    bool gc, gc_told;
    uint64_t tasks[16], goal;
    unsigned task_count, value;

    uint64_t random;
    int format; /* 0: off */
    struct lines lines, read;
    struct values goals, read_goals, procs, read_procs;
    struct moment *moments;
    size_t moment_count;
    uint8_t *reported; /* by goroutine: the reported status + 1 */
    uint64_t generation_read;
};

static struct model w;

static bool v1(void)
{
    return w.format < 22;
}

static void put_line(struct lines *lines, int64_t subject, const char *text)
{
    if (lines->count == lines->capacity) {
        lines->capacity = 2 * lines->capacity + 64;
        lines->line = realloc(lines->line, lines->capacity * sizeof *lines->line);
        assert_non_null(lines->line);
    }
    lines->line[lines->count++] =
        (struct line){.subject = v1() ? subject : 0, .text = strdup(text)};
}

static void clear_lines(struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        free(lines->line[i].text);
    free(lines->line);
    *lines = (struct lines){0};
}

static void put_value(struct values *values, uint64_t value)
{
    if (values->count < sizeof values->value / sizeof *values->value)
        values->value[values->count++] = value;
}

/* MARK: What is to be read */

/* v2: the event's thread, P and goroutine, before it happens. */
static const char *context_of(int m, int p, int64_t g)
{
    static char text[64];
    if (v1())
        return "";
    snprintf(text, sizeof text, " by M%d P%d G%lld", m, p, (long long)g);
    return text;
}

static int64_t go_id(int g)
{
    return g < 0 ? -1 : (int64_t)w.go[g].g.id;
}

static const char *context(int m)
{
    return context_of(m, w.m[m].p, go_id(w.m[m].g));
}

__attribute__((format(printf, 2, 3))) static void expect(int64_t subject, const char *format, ...)
{
    char text[512];
    va_list args;
    if (!w.format)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put_line(&w.lines, subject, text);
}

static const char *const state_names[] = {"NotExist", "Runnable", "Running", "Syscall", "Waiting"};

static void expect_go(int m, int g, enum go_state from, enum go_state to, const char *reason)
{
    expect(go_id(g), "G%lld %s->%s %s%s", (long long)go_id(g), state_names[from], state_names[to],
           reason, context(m));
}

static void expect_proc(int m, int p, const char *to)
{
    if (v1())
        expect(-10 - p, "P%d ->%s", p, to);
    else
        expect(0, "P%d ->%s by M%d", p, to, m);
}

/* Describes long texts by length and checksum; a format keeps `most` bytes. */
static const char *text_of(const char *data, size_t size, char *out)
{
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + (unsigned char)data[i];
    snprintf(out, 64, "'%.*s' %zu %x", (int)(size < 20 ? size : 20), data, size, sum);
    return out;
}

static const char *kept_text(const char *text, char *out)
{
    size_t size = strlen(text);
    return text_of(text, !v1() && size > 1024 ? 1024 : size, out);
}

/* MARK: Calls in the model
 *
 * Each looks whether it is legal for thread `m`, makes it, and says what is to be read. False: not legal.
 */

static char long_name[1501];
static const char *const names[] = {"alpha", "beta",   "r\xc3\xa9gion", "with space and \"quotes\"",
                                    "x",     long_name};

static const char *any_name(void)
{
    return names[random_below(&w.random, sizeof names / sizeof *names)];
}

static void call(int m, struct op op)
{
    op.skip = random_below(&w.random, 4) ? 0 : TRAIL_NO_STACK;
    if (w.m[m].g >= 0 && op.call != GO_PREEMPT)
        w.go[w.m[m].g].woken = false;
    world_do(&w.world, (unsigned)m, &op);
    if (op.call == TASK_BEGIN && op.result && w.task_count < 16)
        w.tasks[w.task_count++] = op.result;
}

static bool runs(int m)
{
    int g = w.m[m].g, p = w.m[m].p;
    return g >= 0 && p >= 0 && w.go[g].state == RUNNING && w.proc[p].state == HELD;
}

static bool holds(int m)
{
    return w.m[m].p >= 0 && w.proc[w.m[m].p].state == HELD;
}

/* Whether its goroutine can leave it: not while it has stopped the world, or sweeps. */
static bool may_leave(int m)
{
    return runs(m) && w.stw_m != m;
}

static int find_go(enum go_state state)
{
    unsigned at;
    if (!w.go_count)
        return -1;
    at = random_below(&w.random, (unsigned)w.go_count);
    for (size_t i = 0; i < w.go_count; i++) {
        int g = (int)((at + i) % w.go_count);
        if (w.go[g].state == state && !w.go[g].forever)
            return g;
    }
    return -1;
}

static int find_proc(enum proc_state state)
{
    unsigned at = random_below(&w.random, PROCS);
    for (unsigned i = 0; i < PROCS; i++) {
        if (w.proc[(at + i) % PROCS].state == state)
            return (int)((at + i) % PROCS);
    }
    return -1;
}

static int new_go(enum go_state state)
{
    struct goroutine *go = &w.go[w.go_count];
    assert_true(w.go_count < MAX_GOROUTINES);
    *go = (struct goroutine){.state = state, .m = -1};
    trail_g_init(&go->g);
    return (int)w.go_count++;
}

/* The host's list of existing goroutines. */
static void list_add(int g)
{
    w.world.goroutines[w.world.goroutine_count++] = &w.go[g].g;
}

static void list_remove(int g)
{
    for (size_t i = 0; i < w.world.goroutine_count; i++) {
        if (w.world.goroutines[i] == &w.go[g].g) {
            w.world.goroutines[i] = w.world.goroutines[--w.world.goroutine_count];
            return;
        }
    }
}

static size_t alive(void)
{
    return w.world.goroutine_count;
}

static bool create(int m, bool blocked)
{
    bool waits = blocked && !(w.format && w.format < 23);
    int g;
    if (!holds(m) || (w.m[m].g >= 0 && !runs(m)) || w.go_count == MAX_GOROUTINES || alive() > 24)
        return false;
    g = new_go(blocked ? WAITING : RUNNABLE);
    w.go[g].seen_runnable = blocked && !waits;
    expect_go(m, g, NONE, waits ? WAITING : RUNNABLE, "");
    call(m, (struct op){.call = blocked ? GO_CREATE_BLOCKED : GO_CREATE, .g = &w.go[g].g});
    list_add(g);
    return true;
}

static void begin_running(int m, int g)
{
    w.go[g].state = RUNNING;
    w.go[g].m = m;
    w.m[m].g = g;
}

static bool start_go(int m, bool labelled)
{
    int g = find_go(RUNNABLE);
    const char *name = any_name();
    char text[64];
    if (!holds(m) || w.m[m].g >= 0 || g < 0)
        return false;
    expect_go(m, g, RUNNABLE, RUNNING, "");
    if (labelled && w.format >= 11)
        expect(go_id(g), "label %s%s", kept_text(name, text), context_of(m, w.m[m].p, go_id(g)));
    call(m, (struct op){
                .call = labelled ? GO_START_LABELLED : GO_START, .g = &w.go[g].g, .name = name});
    begin_running(m, g);
    return true;
}

static void end_go(int g)
{
    w.go[g].state = NONE;
    w.go[g].m = -1;
    list_remove(g);
}

static bool leave(int m, enum call what, enum go_state after, const char *reason, unsigned kind)
{
    int g = w.m[m].g;
    if (!may_leave(m))
        return false;
    expect_go(m, g, RUNNING, after, reason);
    /* v1 has one event for a sleep of the thread's own goroutine and of any other. */
    call(m, (struct op){.call = what, .kind = kind});
    w.go[g].state = after;
    w.go[g].m = w.m[m].g = -1;
    if (after == NONE)
        end_go(g);
    return true;
}

static const char *reason_text(unsigned kind)
{
    static const char *const texts[] = {
#define TEXT(name, text) text,
        TRAIL_BLOCK_REASONS(TEXT)
#undef TEXT
    };
    if (!v1())
        return texts[kind];
    switch ((trail_block_reason)kind) {
    case TRAIL_BLOCK_FOREVER:
    case TRAIL_BLOCK_NETWORK:
    case TRAIL_BLOCK_SELECT:
    case TRAIL_BLOCK_COND:
    case TRAIL_BLOCK_SYNC:
    case TRAIL_BLOCK_CHAN_SEND:
    case TRAIL_BLOCK_CHAN_RECEIVE:
    case TRAIL_BLOCK_SLEEP:
        return texts[kind];
    case TRAIL_BLOCK_GC_ASSIST:
        return w.format >= 11 ? texts[kind] : "";
    default:
        return "";
    }
}

/* Format 7: readers remove the futile wake-up. */
static bool block_in_vain(int m)
{
    int g = w.m[m].g;
    size_t kept;
    if (!may_leave(m) || !w.go[g].woken)
        return false;
    kept = w.go[g].woken_at;
    (void)leave(m, GO_BLOCK_FUTILE, WAITING, "sync", TRAIL_BLOCK_SYNC);
    for (size_t i = kept; i < w.lines.count; i++) {
        if (w.lines.line[i].subject == go_id(g))
            free(w.lines.line[i].text);
        else
            w.lines.line[kept++] = w.lines.line[i];
    }
    /* Later entries have moved. */
    for (size_t i = 0; i < w.go_count; i++)
        w.go[i].woken = false;
    w.lines.count = kept;
    return true;
}

static bool block(int m, bool futile)
{
    unsigned kind = random_below(&w.random, TRAIL_BLOCK_REASON_COUNT);
    int g = w.m[m].g;
    if (futile && w.format == 7)
        return block_in_vain(m);
    if (kind == TRAIL_BLOCK_FOREVER && random_below(&w.random, 4))
        kind = TRAIL_BLOCK_SYNC;
    if (!leave(m, futile ? GO_BLOCK_FUTILE : GO_BLOCK, WAITING, reason_text(kind), kind))
        return false;
    w.go[g].forever |= kind == TRAIL_BLOCK_FOREVER;
    return true;
}

static bool unblock(int m)
{
    int g = find_go(WAITING);
    if (g < 0)
        return false;
    w.go[g].woken = w.format && !w.go[g].seen_runnable;
    w.go[g].woken_at = w.lines.count;
    if (!w.go[g].seen_runnable)
        expect_go(m, g, WAITING, RUNNABLE, "");
    call(m, (struct op){.call = GO_UNBLOCK, .g = &w.go[g].g});
    w.go[g].state = RUNNABLE;
    w.go[g].seen_runnable = false;
    return true;
}

static bool switch_go(int m, bool ends)
{
    int g = find_go(WAITING), from = w.m[m].g, p = w.m[m].p;
    if (!may_leave(m) || g < 0)
        return false;
    if (!w.go[g].seen_runnable)
        expect_go(m, g, WAITING, RUNNABLE, "");
    expect_go(m, from, RUNNING, ends ? NONE : WAITING,
              ends || v1() || (w.format >= 23 && !w.go[g].seen_runnable) ? "" : "unspecified");
    expect(go_id(g), "G%lld Runnable->Running %s", (long long)go_id(g), context_of(m, p, -1));
    call(m, (struct op){.call = ends ? GO_SWITCH_END : GO_SWITCH, .g = &w.go[g].g});
    w.go[g].seen_runnable = false;
    w.go[from].state = ends ? NONE : WAITING;
    w.go[from].m = -1;
    if (ends)
        end_go(from);
    begin_running(m, g);
    return true;
}

static bool label(int m)
{
    const char *name = any_name();
    char text[64];
    if (!runs(m))
        return false;
    if (!v1())
        expect(0, "label %s%s", kept_text(name, text), context(m));
    call(m, (struct op){.call = GO_LABEL, .name = name});
    return true;
}

/* MARK: System calls */

static bool in_syscall(int m)
{
    return w.m[m].g >= 0 && w.go[w.m[m].g].state == SYSCALL;
}

static bool enter(int m)
{
    int g = w.m[m].g, p = w.m[m].p;
    if (!may_leave(m) || w.proc[p].sweeps)
        return false;
    expect_go(m, g, RUNNING, SYSCALL, "");
    call(m, (struct op){.call = SYSCALL_ENTER});
    w.go[g].state = SYSCALL;
    w.proc[p].state = IN_SYSCALL;
    w.go[g].since_start = w.proc[p].since_start = false;
    return true;
}

static bool leave_syscall(int m)
{
    int g = w.m[m].g, p = w.m[m].p;
    if (!in_syscall(m) || p < 0 || w.proc[p].state != IN_SYSCALL)
        return false;
    if (v1() && w.proc[p].since_start) {
        expect_proc(m, p, "Running");
        expect_go(m, g, SYSCALL, RUNNABLE, "");
        expect_go(m, g, RUNNABLE, RUNNING, "");
    } else {
        expect_go(m, g, SYSCALL, RUNNING, "");
    }
    call(m, (struct op){.call = SYSCALL_EXIT});
    w.go[g].state = RUNNING;
    w.proc[p].state = HELD;
    w.proc[p].since_start = false;
    return true;
}

static bool leave_syscall_blocked(int m)
{
    int g = w.m[m].g, p = w.m[m].p;
    if (!in_syscall(m))
        return false;
    if (p >= 0 && w.proc[p].state == IN_SYSCALL) {
        if (!v1() || !w.proc[p].since_start)
            expect_proc(m, p, "Idle");
        expect_proc(m, p, "Running");
        w.proc[p].state = HELD;
        w.proc[p].since_start = false;
    }
    expect_go(m, g, SYSCALL, RUNNABLE, "");
    call(m, (struct op){.call = SYSCALL_EXIT_BLOCKED});
    w.go[g].state = RUNNABLE;
    w.go[g].m = w.m[m].g = -1;
    return true;
}

static bool returned(int m)
{
    int g = find_go(SYSCALL);
    if (g < 0 || w.m[w.go[g].m].p >= 0)
        return false;
    call(m, (struct op){.call = SYSCALL_RETURNED, .g = &w.go[g].g});
    return true;
}

static bool create_in_syscall(int m)
{
    int g;
    if (w.m[m].g >= 0 || (w.m[m].p >= 0 && random_below(&w.random, 4)) ||
        w.go_count == MAX_GOROUTINES || alive() > 24 || (w.m[m].p >= 0 && w.proc[w.m[m].p].sweeps))
        return false;
    g = new_go(SYSCALL);
    expect_go(m, g, NONE, v1() ? RUNNABLE : SYSCALL, "");
    w.go[g].found_in_syscall = w.format && v1();
    call(m, (struct op){.call = GO_CREATE_SYSCALL, .g = &w.go[g].g});
    w.go[g].m = m;
    w.m[m].g = g;
    list_add(g);
    return true;
}

static bool destroy_in_syscall(int m)
{
    int g = w.m[m].g, p = w.m[m].p;
    if (!in_syscall(m) || (p >= 0 && w.proc[p].state != IN_SYSCALL))
        return false;
    if (!v1()) {
        if (p >= 0)
            expect_proc(m, p, "Idle");
        expect_go(m, g, SYSCALL, NONE, "");
        /* As in Go, which steals a P that was abandoned when the call ended. */
        if (p >= 0)
            expect_proc(m, p, "Idle");
    } else if (p >= 0 && !w.proc[p].since_start) {
        expect_go(m, g, SYSCALL, RUNNING, "");
        expect_go(m, g, RUNNING, NONE, "");
        expect_proc(m, p, "Idle");
    }
    call(m, (struct op){.call = GO_DESTROY_SYSCALL});
    if (p >= 0) {
        w.proc[p].state = IDLE;
        w.proc[p].since_start = false;
        w.proc[p].m = w.m[m].p = -1;
    }
    end_go(g);
    w.m[m].g = -1;
    return true;
}

/* MARK: Ps */

static bool start_proc(int m)
{
    int p = find_proc(IDLE);
    if (w.m[m].p >= 0 || p < 0)
        return false;
    expect_proc(m, p, "Running");
    call(m, (struct op){.call = PROC_START, .p = &w.world.procs[p]});
    w.proc[p].state = HELD;
    w.proc[p].m = m;
    w.m[m].p = p;
    return true;
}

static bool stop_proc(int m)
{
    int g = w.m[m].g, p = w.m[m].p;
    if (p < 0 || w.proc[p].sweeps || (g >= 0 && !in_syscall(m)))
        return false;
    if (!v1() || !w.proc[p].since_start)
        expect_proc(m, p, "Idle");
    call(m, (struct op){.call = PROC_STOP});
    w.proc[p].state = IDLE;
    w.proc[p].m = w.m[m].p = -1;
    w.proc[p].since_start = false;
    return true;
}

static bool steal_proc(int m)
{
    int p = find_proc(IN_SYSCALL);
    if (p < 0 || w.proc[p].m == m)
        return false;
    if (!v1() || !w.proc[p].since_start)
        expect_proc(m, p, "Idle");
    call(m, (struct op){.call = PROC_STEAL, .p = &w.world.procs[p]});
    if (w.proc[p].m >= 0)
        w.m[w.proc[p].m].p = -1;
    w.proc[p].state = IDLE;
    w.proc[p].m = -1;
    w.proc[p].since_start = false;
    return true;
}

static bool change_procs(int m)
{
    unsigned n = 1 + random_below(&w.random, 64);
    if (!runs(m))
        return false;
    if (w.format)
        put_value(&w.procs, n);
    call(m, (struct op){.call = PROCS_CHANGE, .kind = n});
    return true;
}

/* MARK: The collector */

#define RANGE_GC     "GC concurrent mark phase"
#define RANGE_ASSIST "GC mark assist"
#define RANGE_SWEEP  "GC incremental sweep"

static bool begin_gc(int m)
{
    if (!runs(m) || w.gc)
        return false;
    expect(-1, "begin " RANGE_GC "%s", context(m));
    call(m, (struct op){.call = GC_BEGIN});
    w.gc = true;
    w.gc_told = w.format != 0;
    return true;
}

static bool end_gc(int m)
{
    if (!runs(m) || !w.gc)
        return false;
    if (!v1() || w.gc_told)
        expect(-1, "end " RANGE_GC "%s", context(m));
    call(m, (struct op){.call = GC_END});
    w.gc = w.gc_told = false;
    return true;
}

static bool assist(int m)
{
    struct goroutine *go = w.m[m].g >= 0 ? &w.go[w.m[m].g] : NULL;
    if (!go || !runs(m))
        return false;
    if (w.format >= 11)
        expect(go_id(w.m[m].g), "%s " RANGE_ASSIST "%s", go->in_assist ? "end" : "begin",
               context(m));
    call(m, (struct op){.call = go->in_assist ? ASSIST_END : ASSIST_BEGIN});
    go->in_assist = !go->in_assist;
    return true;
}

static bool sweep(int m)
{
    struct proc *proc = w.m[m].p >= 0 ? &w.proc[w.m[m].p] : NULL;
    uint64_t bytes = 2 * (UINT64_C(1) + random_below(&w.random, 5000));
    if (!proc || !holds(m))
        return false;
    if (!proc->sweeps) {
        call(m, (struct op){.call = SWEEP_BEGIN});
        proc->sweeps = true;
        proc->sweep_told = false;
        proc->swept = 0;
    } else if (random_below(&w.random, 3)) {
        if (w.format && !proc->sweep_told) {
            expect(-10 - w.m[m].p, "begin " RANGE_SWEEP "%s", context(m));
            proc->sweep_told = true;
            proc->swept = 0;
        }
        proc->swept += bytes;
        call(m, (struct op){.call = SWEEP_SPAN, .value = bytes});
    } else {
        if (proc->sweep_told && w.format < 11)
            expect(-10 - w.m[m].p, "end " RANGE_SWEEP "%s", context(m));
        else if (proc->sweep_told)
            expect(-10 - w.m[m].p, "end " RANGE_SWEEP " %llu %llu%s",
                   (unsigned long long)proc->swept, (unsigned long long)(proc->swept / 2),
                   context(m));
        call(m, (struct op){.call = SWEEP_END});
        proc->sweeps = proc->sweep_told = false;
    }
    return true;
}

static const char *stw_text(unsigned kind)
{
    static const char *const texts[] = {
#define TEXT(name, text) text,
        TRAIL_STW_KINDS(TEXT)
#undef TEXT
    };
    if (w.format == 7)
        return "";
    if (w.format == 21 && kind == TRAIL_STW_ALL_STACKS)
        return "all goroutine stack trace";
    if (w.format == 21 && (kind == TRAIL_STW_UNKNOWN || kind >= TRAIL_STW_START_TRACE))
        return "";
    return texts[kind];
}

static bool stw_is_told(unsigned kind)
{
    return w.format >= 21 ||
           (w.format && (kind == TRAIL_STW_GC_MARK_TERM || kind == TRAIL_STW_GC_SWEEP_TERM));
}

static bool stop_world(int m)
{
    unsigned kind = random_below(&w.random, TRAIL_STW_KIND_COUNT);
    if (!runs(m) || w.stw_m >= 0)
        return false;
    if (stw_is_told(kind))
        expect(v1() ? -1 : go_id(w.m[m].g), "begin stop-the-world (%s)%s", stw_text(kind),
               context(m));
    call(m, (struct op){.call = STW_BEGIN, .kind = kind});
    w.stw_m = m;
    w.stw_kind = kind;
    w.stw_told = stw_is_told(kind);
    return true;
}

static bool start_world(int m)
{
    if (w.stw_m != m)
        return false;
    if (w.stw_told)
        expect(v1() ? -1 : go_id(w.m[m].g), "end stop-the-world (%s)%s", stw_text(w.stw_kind),
               context(m));
    call(m, (struct op){.call = STW_END});
    w.stw_m = -1;
    w.stw_told = false;
    return true;
}

static bool heap(int m)
{
    uint64_t bytes = 1000 + ++w.value;
    if (!holds(m))
        return false;
    if (random_below(&w.random, 2)) {
        expect(-10 - w.m[m].p, "heap %llu%s", (unsigned long long)bytes, context(m));
        call(m, (struct op){.call = HEAP_ALLOC, .value = bytes});
    } else {
        bool none = random_below(&w.random, 4) == 0;
        if (w.format)
            put_value(&w.goals, none ? 0 : bytes);
        call(m, (struct op){.call = HEAP_GOAL, .value = none ? UINT64_MAX : bytes});
        w.goal = none ? 0 : bytes;
    }
    return true;
}

/* MARK: Annotations */

static bool annotates(int m)
{
    return runs(m) && (w.format == 0 || w.format >= 11);
}

static uint64_t any_task(void)
{
    return w.task_count && random_below(&w.random, 2)
               ? w.tasks[random_below(&w.random, w.task_count)]
               : 0;
}

static bool begin_task(int m)
{
    uint64_t parent = any_task();
    const char *name = any_name();
    unsigned before = w.task_count;
    char text[64], kept[64];
    if (!annotates(m) || before >= 16)
        return false;
    snprintf(text, sizeof text, "%s", context(m));
    call(m, (struct op){.call = TASK_BEGIN, .task = parent, .name = name});
    if (!w.format) {
        assert_int_equal(w.task_count, before);
        return true;
    }
    assert_int_equal(w.task_count, before + 1);
    expect(go_id(w.m[m].g), "task %llu of %lld %s%s", (unsigned long long)w.tasks[before],
           parent ? (long long)parent : -1LL, kept_text(name, kept), text);
    return true;
}

static bool end_task(int m)
{
    unsigned at;
    if (!annotates(m) || !w.task_count)
        return false;
    at = random_below(&w.random, w.task_count);
    expect(go_id(w.m[m].g), "task end %llu%s", (unsigned long long)w.tasks[at], context(m));
    call(m, (struct op){.call = TASK_END, .task = w.tasks[at]});
    w.tasks[at] = w.tasks[--w.task_count];
    return true;
}

static bool region(int m, bool begins)
{
    struct goroutine *go = w.m[m].g >= 0 ? &w.go[w.m[m].g] : NULL;
    uint64_t task = any_task();
    const char *name = any_name();
    char text[64];
    if (!go || !annotates(m) || (begins ? go->regions == 8 : go->regions == 0))
        return false;
    if (begins) {
        go->region[go->regions].task = task;
        go->region[go->regions++].name = name;
    } else {
        task = go->region[--go->regions].task;
        name = go->region[go->regions].name;
    }
    expect(go_id(w.m[m].g), "region %s %llu %s%s", begins ? "begin" : "end",
           (unsigned long long)task, kept_text(name, text), context(m));
    call(m, (struct op){.call = begins ? REGION_BEGIN : REGION_END, .task = task, .name = name});
    return true;
}

static bool write_log(int m)
{
    const char *name = any_name(), *message = any_name();
    uint64_t task = any_task();
    char text[64], more[64];
    if (!annotates(m))
        return false;
    if (random_below(&w.random, 8) == 0)
        name = message = "";
    expect(go_id(w.m[m].g), "log %llu %s %s%s", (unsigned long long)task, kept_text(name, text),
           kept_text(message, more), context(m));
    call(m, (struct op){.call = random_below(&w.random, 2) ? LOG : LOGF,
                        .task = task,
                        .name = name,
                        .text = message});
    return true;
}

static bool sample(int m)
{
    /* v1: any event of a thread in a system call ends the call for readers (§4.3). */
    if (v1() && in_syscall(m))
        return false;
    if (w.format >= 19)
        expect(-2, "sample by M%d P%d G%lld", v1() ? -1 : m, w.m[m].p, (long long)go_id(w.m[m].g));
    call(m, (struct op){.call = CPU_SAMPLE});
    return true;
}

static bool alloc(int m)
{
    static const enum call calls[] = {ALLOC_OBJECT, ALLOC_SPAN, ALLOC_STACK};
    unsigned which = random_below(&w.random, 3);
    uint64_t n = random_below(&w.random, 1000);
    if (w.format >= 23 && which == 0)
        expect(0, "object %llu type 7%s", (unsigned long long)n, context(m));
    else if (w.format >= 23)
        expect(0, "%s %llu%s", which == 1 ? "span" : "stack", (unsigned long long)n, context(m));
    call(m, (struct op){.call = calls[which],
                        .value = 0x10000 + n * (which == 0   ? 8
                                                : which == 1 ? 8192
                                                             : 2048)});
    return true;
}

/* MARK: Histories */

static bool try_one(int m)
{
    switch (random_below(&w.random, 44)) {
    case 0:
    case 1:
    case 2:
        return create(m, false);
    case 3:
        return create(m, true);
    case 4:
    case 5:
    case 6:
    case 7:
        return start_go(m, false);
    case 8:
        return start_go(m, true);
    case 9:
        return leave(m, GO_END, NONE, "", 0);
    case 10:
        return leave(m, GO_SCHED, RUNNABLE, "runtime.Gosched", 0);
    case 11:
        return leave(m, GO_PREEMPT, RUNNABLE, "preempted", 0);
    case 12:
    case 13:
    case 14:
        return block(m, false);
    case 15:
        return block(m, true);
    case 16:
    case 17:
    case 18:
        return unblock(m);
    case 19:
        return switch_go(m, false);
    case 20:
        return switch_go(m, true);
    case 21:
        return label(m);
    case 22:
    case 23:
        return enter(m);
    case 24:
        return leave_syscall(m);
    case 25:
        return leave_syscall_blocked(m);
    case 26:
        return create_in_syscall(m);
    case 27:
        return destroy_in_syscall(m);
    case 28:
    case 29:
    case 30:
        return start_proc(m);
    case 31:
        return stop_proc(m);
    case 32:
        return steal_proc(m);
    case 33:
        return change_procs(m);
    case 34:
        return w.gc ? end_gc(m) : begin_gc(m);
    case 35:
        return assist(m);
    case 36:
        return sweep(m);
    case 37:
        return w.stw_m >= 0 ? start_world(m) : stop_world(m);
    case 38:
        return heap(m);
    case 39:
        return random_below(&w.random, 2) ? begin_task(m) : end_task(m);
    case 40:
        return region(m, random_below(&w.random, 2));
    case 41:
        return write_log(m);
    case 42:
        return sample(m);
    default:
        return random_below(&w.random, 2) ? alloc(m) : returned(m);
    }
}

static void some_calls(unsigned n)
{
    for (unsigned done = 0, tried = 0; done < n && tried < 100 * n; tried++)
        done += try_one((int)random_below(&w.random, THREADS));
}

/* Makes it possible to end a generation again. */
static void let_world_run(void)
{
    if (w.stw_m >= 0)
        assert_true(start_world(w.stw_m));
}

static void new_moment(void)
{
    struct moment *moment;
    w.moments = realloc(w.moments, (w.moment_count + 1) * sizeof *w.moments);
    assert_non_null(w.moments);
    moment = &w.moments[w.moment_count++];
    moment->generation = tracer.last_generation;
    moment->lines = w.lines.count;
    for (size_t i = 0; i < w.go_count; i++) {
        const struct goroutine *go = &w.go[i];
        moment->state[i] = (uint8_t)(go->seen_runnable ? RUNNABLE : go->state);
    }
    for (size_t i = w.go_count; i < MAX_GOROUTINES; i++)
        moment->state[i] = NONE;
}

/* What the model must know about a start, apart from the format. */
static void note_start(int format)
{
    w.format = format;
    clear_lines(&w.lines);
    w.moment_count = 0;
    w.goals.count = w.procs.count = w.task_count = 0;
    w.gc_told = w.stw_told = false;
    for (size_t i = 0; i < w.go_count; i++) {
        w.go[i].since_start = w.go[i].state == SYSCALL;
        w.go[i].found_in_syscall = false;
        w.go[i].woken = false;
        /* The previous trace's format may have shown it so. */
        w.go[i].seen_runnable = false;
    }
    for (int p = 0; p < PROCS; p++) {
        w.proc[p].sweep_told = false;
        w.proc[p].since_start = v1() && w.proc[p].state == IN_SYSCALL;
        if (v1() && w.proc[p].state == HELD)
            expect_proc(w.proc[p].m, p, "Running");
    }
}

static void note_stop(void)
{
    for (int m = 0; v1() && m < THREADS; m++) {
        int g = w.m[m].g, p = w.m[m].p;
        /* Readers take a call without an end for one that did not block. */
        if (in_syscall(m) && p >= 0 && w.proc[p].state == IN_SYSCALL && !w.proc[p].since_start)
            expect_go(m, g, SYSCALL, RUNNING, "");
    }
}

/* MARK: Reading back */

static int thread_of(int64_t id)
{
    for (int i = 0; i < THREADS; i++) {
        if ((int64_t)w.world.workers[i].m.id == id)
            return i;
    }
    return -1;
}

static const char *string_text(trail_reader *reader, trail_string_handle handle, char *out)
{
    trail_string string = trail_reader_string(reader, handle);
    return text_of(string.data, string.size, out);
}

static const char *event_context(const trail_event *event)
{
    return context_of(thread_of(event->thread), (int)event->proc, event->goroutine);
}

static void read_status(const trail_event *event)
{
    for (size_t i = 0; i < w.go_count; i++) {
        if ((int64_t)w.go[i].g.id != event->transition.id)
            continue;
        static const enum go_state states[] = {[TRAIL_GO_RUNNABLE] = RUNNABLE,
                                               [TRAIL_GO_RUNNING] = RUNNING,
                                               [TRAIL_GO_WAITING] = WAITING,
                                               [TRAIL_GO_SYSCALL] = SYSCALL};
        if (w.reported[i])
            fail_msg("G%lld was recorded twice", (long long)event->transition.id);
        w.reported[i] = (uint8_t)(1 + states[event->transition.to]);
        return;
    }
    fail_msg("there is no G%lld", (long long)event->transition.id);
}

static void read_go(trail_reader *reader, const trail_event *event)
{
    trail_string reason = trail_reader_string(reader, event->transition.reason);
    char text[256];
    if (event->wire == V2_GoStatus || event->wire == V2_GoStatusStack) {
        if (event->transition.from == TRAIL_GO_UNDETERMINED)
            read_status(event);
        return;
    }
    snprintf(text, sizeof text, "G%lld %s->%s %.*s%s", (long long)event->transition.id,
             trail_go_state_name((trail_go_state)event->transition.from),
             trail_go_state_name((trail_go_state)event->transition.to), (int)reason.size,
             reason.data, event_context(event));
    put_line(&w.read, event->transition.id, text);
}

static void read_proc(const trail_event *event)
{
    const char *to = trail_proc_state_name((trail_proc_state)event->transition.to);
    long long p = event->transition.id;
    char text[64];
    if (p >= PROCS || (!v1() && event->wire == V2_ProcStatus))
        return;
    if (v1())
        snprintf(text, sizeof text, "P%lld ->%s", p, to);
    else
        snprintf(text, sizeof text, "P%lld ->%s by M%d", p, to, thread_of(event->thread));
    put_line(&w.read, -10 - p, text);
}

static void read_range(trail_reader *reader, const trail_event *event)
{
    trail_string name = trail_reader_string(reader, event->range.name);
    const char *what = event->kind == TRAIL_RANGE_BEGIN ? "begin" : "end";
    int64_t subject = event->range.range == TRAIL_RANGE_SWEEP         ? -10 - event->proc
                      : event->range.range == TRAIL_RANGE_MARK_ASSIST ? event->goroutine
                                                                      : -1;
    char text[256];
    if (event->range.range == TRAIL_RANGE_STW && w.format == 7)
        name = (trail_string){"stop-the-world ()", 17};
    if (event->range.has_swept && w.format >= 11)
        snprintf(text, sizeof text, "%s %.*s %llu %llu%s", what, (int)name.size, name.data,
                 (unsigned long long)event->range.swept_bytes,
                 (unsigned long long)event->range.reclaimed_bytes, event_context(event));
    else
        snprintf(text, sizeof text, "%s %.*s%s", what, (int)name.size, name.data,
                 event_context(event));
    put_line(&w.read, subject, text);
}

static void read_metric(const trail_event *event)
{
    char text[128];
    if (event->metric.metric == TRAIL_METRIC_HEAP_GOAL) {
        put_value(&w.read_goals, event->metric.value);
    } else if (event->metric.metric == TRAIL_METRIC_GOMAXPROCS) {
        put_value(&w.read_procs, event->metric.value);
    } else {
        snprintf(text, sizeof text, "heap %llu%s", (unsigned long long)event->metric.value,
                 event_context(event));
        put_line(&w.read, -10 - event->proc, text);
    }
}

static void read_alloc(const trail_event *event)
{
    const uint64_t *arg = event->experimental.arg;
    const char *name = trail_experimental_name(event);
    char text[128];
    if (strcmp(name, "HeapObjectAlloc") == 0)
        snprintf(text, sizeof text, "object %llu type %llu%s", (unsigned long long)arg[0],
                 (unsigned long long)arg[1], event_context(event));
    else
        snprintf(text, sizeof text, "%s %llu%s",
                 strcmp(name, "SpanFree") == 0              ? "span"
                 : strcmp(name, "GoroutineStackAlloc") == 0 ? "stack"
                                                            : name,
                 (unsigned long long)arg[0], event_context(event));
    put_line(&w.read, 0, text);
}

static void read_annotation(trail_reader *reader, const trail_event *event)
{
    char text[256], one[64], two[64];
    switch (event->kind) {
    case TRAIL_TASK_BEGIN:
        snprintf(text, sizeof text, "task %llu of %lld %s%s", (unsigned long long)event->task.id,
                 (long long)event->task.parent, string_text(reader, event->task.type, one),
                 event_context(event));
        break;
    case TRAIL_TASK_END:
        snprintf(text, sizeof text, "task end %llu%s", (unsigned long long)event->task.id,
                 event_context(event));
        break;
    case TRAIL_LOG:
        snprintf(text, sizeof text, "log %llu %s %s%s", (unsigned long long)event->log.task,
                 string_text(reader, event->log.category, one),
                 string_text(reader, event->log.message, two), event_context(event));
        break;
    default:
        snprintf(text, sizeof text, "region %s %llu %s%s",
                 event->kind == TRAIL_REGION_BEGIN ? "begin" : "end",
                 (unsigned long long)event->region.task,
                 string_text(reader, event->region.type, one), event_context(event));
    }
    put_line(&w.read, event->goroutine, text);
}

static void read_event(trail_reader *reader, const trail_event *event, void *unused)
{
    char text[256], one[64];
    (void)unused;
    switch ((trail_kind)event->kind) {
    case TRAIL_STATE_TRANSITION:
        if (event->transition.resource == TRAIL_RESOURCE_PROC)
            read_proc(event);
        else
            read_go(reader, event);
        break;
    case TRAIL_RANGE_BEGIN:
    case TRAIL_RANGE_END:
        read_range(reader, event);
        break;
    case TRAIL_METRIC:
        read_metric(event);
        break;
    case TRAIL_LABEL:
        snprintf(text, sizeof text, "label %s%s", string_text(reader, event->label.text, one),
                 event_context(event));
        put_line(&w.read, event->goroutine, text);
        break;
    case TRAIL_STACK_SAMPLE:
        snprintf(text, sizeof text, "sample by M%d P%d G%lld", thread_of(event->thread),
                 (int)event->proc, (long long)event->goroutine);
        put_line(&w.read, -2, text);
        break;
    case TRAIL_EXPERIMENTAL:
        read_alloc(event);
        break;
    case TRAIL_TASK_BEGIN:
    case TRAIL_TASK_END:
    case TRAIL_REGION_BEGIN:
    case TRAIL_REGION_END:
    case TRAIL_LOG:
        read_annotation(reader, event);
        break;
    default:
        break;
    }
}

/* MARK: Comparing */

static int by_subject(const void *left, const void *right)
{
    const struct line *a = left, *b = right;
    if (a->subject != b->subject)
        return a->subject < b->subject ? -1 : 1;
    return a->generation < b->generation ? -1 : a->generation > b->generation;
}

/* Groups lines by subject, each group in its own order. */
static void group(struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        lines->line[i].generation = i;
    if (lines->count)
        qsort(lines->line, lines->count, sizeof *lines->line, by_subject);
}

static uint64_t seed_now;
static struct trace current_trace; /* to keep it */

static void differ(const struct lines *expected, size_t from, size_t at)
{
    trace_keep(&current_trace);
    print_message("seed %llu, format %d: event %zu differs\n", (unsigned long long)seed_now,
                  w.format, at);
    for (size_t i = at > 6 ? at - 6 : 0; i < at + 4; i++)
        print_message("%s %-60s | %s\n", i == at ? "->" : "  ",
                      from + i < expected->count ? expected->line[from + i].text : "(end)",
                      i < w.read.count ? w.read.line[i].text : "(end)");
    fail_msg("expected | read");
}

static void compare_lines(size_t from)
{
    struct lines expected = {w.lines.line + from, w.lines.count - from, 0};
    if (v1()) {
        group(&expected);
        group(&w.read);
    }
    for (size_t i = 0; i < expected.count || i < w.read.count; i++) {
        if (i >= expected.count || i >= w.read.count ||
            strcmp(expected.line[i].text, w.read.line[i].text) != 0)
            differ(&expected, 0, i);
    }
}

/* Every goroutine of that moment was reported once, with its state. */
static void compare_statuses(const struct moment *moment)
{
    for (size_t i = 0; i < w.go_count; i++) {
        int reported = (int)w.reported[i] - 1, was = moment->state[i];
        if (w.go[i].found_in_syscall && was == NONE)
            continue;
        if (reported != (was == NONE ? -1 : was))
            fail_msg("seed %llu, format %d: G%lld was %s, recorded as %s",
                     (unsigned long long)seed_now, w.format, (long long)w.go[i].g.id,
                     state_names[was], reported < 0 ? "nothing" : state_names[reported]);
    }
}

/* `wanted` occurs in order; values in between are from other threads. */
static void compare_values(const struct values *wanted, const struct values *read, const char *what)
{
    size_t at = 0;
    for (size_t i = 0; i < read->count && at < wanted->count; i++)
        at += read->value[i] == wanted->value[at];
    if (at < wanted->count)
        fail_msg("seed %llu, format %d: %s %llu is missing", (unsigned long long)seed_now, w.format,
                 what, (unsigned long long)wanted->value[at]);
}

static void read_back(const struct trace *trace)
{
    trail_error err;
    clear_lines(&w.read);
    w.read_goals.count = w.read_procs.count = 0;
    memset(w.reported, 0, MAX_GOROUTINES);
    current_trace = *trace;
    if (trace_read(trace, read_event, NULL, &err) < 0) {
        for (size_t i = 0; i < w.lines.count && getenv("TRAIL_TEST_KEEP"); i++)
            print_message("%s\n", w.lines.line[i].text);
        fail_msg("seed %llu, format %d: %s", (unsigned long long)seed_now, w.format, err.message);
    }
}

static void compare_trace(const struct trace *trace)
{
    trail_stats stats;
    read_back(trace);
    compare_lines(0);
    compare_statuses(&w.moments[0]);
    compare_values(&w.goals, &w.read_goals, "heap goal");
    /* The first number of Ps of v1 belongs to the snapshot. */
    compare_values(&w.procs, &w.read_procs, "number of Ps");
    trail_stats_get(&stats);
    assert_int_equal(stats.misuse, 0);
    assert_int_equal(stats.lost_events, 0);
    assert_int_equal(stats.bytes, trace->size);
}

/* MARK: The tests */

struct starting {
    trail_options options;
    struct trace *trace;
    bool ok;
    trail_error err;
};

static void do_start(void *context)
{
    struct starting *starting = context;
    starting->ok =
        trail_start_sink(&starting->options, trace_append, starting->trace, &starting->err);
}

static void do_advance(void *context)
{
    (void)context;
    trail_advance();
}

static void do_stop(void *context)
{
    struct starting *starting = context;
    starting->ok = trail_stop(&starting->err);
}

/* On a thread of the world, or on the test's own, which has no M. */
static void anywhere(void (*job)(void *context), void *context)
{
    unsigned at = random_below(&w.random, THREADS + 1);
    if (at < THREADS)
        world_run(&w.world, at, job, context);
    else
        job(context);
}

/* A failed history leaves its threads and its trace behind, so no other test can run in this
 * process. */
static bool in_history;

static void begin_history(uint64_t seed)
{
    if (in_history)
        skip();
    in_history = true;
    w.random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    seed_now = seed;
    w.format = 0;
    w.go_count = 0;
    w.gc = false;
    w.stw_m = -1;
    w.value = 0;
    w.task_count = 0;
    for (int i = 0; i < THREADS; i++)
        w.m[i].g = w.m[i].p = -1;
    for (int i = 0; i < PROCS; i++)
        w.proc[i] = (struct proc){.state = IDLE, .m = -1};
    world_begin(&w.world);
    w.moment_count = 0;
}

/* Nothing may outlive the world: no collection, no stopped world. */
static void end_history(void)
{
    struct op op = {.call = GC_END};
    w.format = 0;
    let_world_run();
    if (w.gc)
        world_do(&w.world, 0, &op);
    world_end(&w.world);
    clear_lines(&w.lines);
    clear_lines(&w.read);
    in_history = false;
}

static void record_once(int format, unsigned calls, unsigned generations)
{
    struct trace trace = {0};
    struct starting starting = {
        .options = {.format = format,
                    .generation_ns = INT64_C(3600000000000),
                    .alloc_free = format >= 23,
                    .unwinder = random_below(&w.random, 2) ? TRAIL_UNWIND_NONE : TRAIL_UNWIND_AUTO},
        .trace = &trace};
    anywhere(do_start, &starting);
    if (!starting.ok)
        fail_msg("%s", starting.err.message);
    note_start(format);
    new_moment();
    for (unsigned i = 0; i < generations; i++) {
        some_calls(calls);
        if (i + 1 < generations && !v1()) {
            let_world_run();
            anywhere(do_advance, NULL);
        }
    }
    note_stop();
    anywhere(do_stop, &starting);
    if (!starting.ok)
        fail_msg("%s", starting.err.message);
    compare_trace(&trace);
    w.format = 0;
    trace_free(&trace);
}

static void one_history(uint64_t seed, int only_format, unsigned calls, unsigned generations)
{
    begin_history(seed);
    for (unsigned i = 0; i < 3; i++) {
        some_calls(random_below(&w.random, calls));
        record_once(only_format ? only_format : all_formats[random_below(&w.random, FORMATS)],
                    1 + random_below(&w.random, calls), generations);
    }
    end_history();
}

static void histories(unsigned n, int format, unsigned calls, unsigned generations)
{
    const char *seed = getenv("TRAIL_TEST_SEED");
    if (seed) {
        one_history(strtoull(seed, NULL, 10), format, calls, generations);
        return;
    }
    for (uint64_t i = 0; i < how_many(n); i++)
        one_history(i, format, calls, generations);
}

#define FORMAT_TEST(format)                                                                        \
    static void short_histories_##format(void **state)                                             \
    {                                                                                              \
        (void)state;                                                                               \
        histories(60, format, 80, 3);                                                              \
    }                                                                                              \
    static void long_history_##format(void **state)                                                \
    {                                                                                              \
        (void)state;                                                                               \
        histories(1, format, 100, 30);                                                             \
    }
FORMAT_TEST(7)
FORMAT_TEST(11)
FORMAT_TEST(19)
FORMAT_TEST(21)
FORMAT_TEST(22)
FORMAT_TEST(23)
FORMAT_TEST(26)

/* A process may change formats between traces, in any order. */
static void mixed_formats(void **state)
{
    (void)state;
    histories(60, 0, 60, 2);
}

/* MARK: The flight recorder */

static uint64_t first_generation_of(const struct trace *trace)
{
    trail_error err;
    trail_source *source = trail_source_open_memory(trace->data, trace->size, &err);
    trail_walk *walk = trail_walk_open(source, &err);
    trail_batch batch;
    assert_int_equal(trail_walk_next(walk, &batch), 1);
    trail_walk_close(walk);
    trail_source_close(source);
    return batch.generation;
}

static void take_snapshot(struct trace *trace)
{
    int fd = memfd_create("snapshot", 0);
    uint64_t bytes;
    trail_error err;
    assert_true(fd >= 0);
    if (!trail_flight_snapshot(fd, &bytes, &err))
        fail_msg("%s", err.message);
    trace->data = malloc(bytes);
    trace->size = (size_t)pread(fd, trace->data, bytes, 0);
    assert_int_equal(trace->size, bytes);
    close(fd);
}

static void check_snapshot(void)
{
    struct trace trace = {0};
    const struct moment *moment = NULL;
    uint64_t first;
    let_world_run();
    take_snapshot(&trace);
    first = first_generation_of(&trace);
    for (size_t i = 0; i < w.moment_count; i++) {
        if (w.moments[i].generation == first)
            moment = &w.moments[i];
    }
    assert_non_null(moment);
    if (!moment) /* for analysers that do not know that the line above does not return */
        return;
    read_back(&trace);
    compare_lines(moment->lines);
    compare_statuses(moment);
    trace_free(&trace);
    new_moment();
}

static void snapshots(uint64_t seed, int format)
{
    trail_flight_options options = {.trace = {.format = format,
                                              .generation_ns = INT64_C(3600000000000),
                                              .alloc_free = format >= 23},
                                    .min_age_ns = 1,
                                    .max_bytes = 20000};
    trail_error err;
    begin_history(seed);
    some_calls(50);
    let_world_run();
    if (!trail_flight_start(&options, &err))
        fail_msg("%s", err.message);
    note_start(format);
    new_moment();
    for (int i = 0; i < 12; i++) {
        some_calls(1 + random_below(&w.random, 60));
        if (random_below(&w.random, 3) == 0) {
            check_snapshot();
        } else {
            let_world_run();
            anywhere(do_advance, NULL);
            new_moment();
        }
    }
    trail_flight_stop();
    end_history();
}

static void flight_snapshots(void **state)
{
    const char *seed = getenv("TRAIL_TEST_SEED");
    (void)state;
    for (uint64_t i = 0; i < how_many(20); i++) {
        snapshots(seed ? strtoull(seed, NULL, 10) : i, 22);
        snapshots(seed ? strtoull(seed, NULL, 10) : i, 23);
        snapshots(seed ? strtoull(seed, NULL, 10) : i, 26);
    }
}

static int set_up(void **state)
{
    static const trail_alloc_info info = {
        .lowest = 0x10000, .page_size = 8192, .object_align = 8, .min_stack = 2048};
    (void)state;
    memset(long_name, 'n', sizeof long_name - 1);
    w.go = calloc(MAX_GOROUTINES, sizeof *w.go);
    w.reported = calloc(MAX_GOROUTINES, 1);
    trail_alloc_host(&info, NULL, NULL);
    return 0;
}

#define FORMAT_TESTS(format)                                                                       \
    cmocka_unit_test(short_histories_##format), cmocka_unit_test(long_history_##format)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FORMAT_TESTS(7),
        FORMAT_TESTS(11),
        FORMAT_TESTS(19),
        FORMAT_TESTS(21),
        FORMAT_TESTS(22),
        FORMAT_TESTS(23),
        FORMAT_TESTS(26),
        cmocka_unit_test(mixed_formats),
        cmocka_unit_test(flight_snapshots),
    };
    cmocka_set_test_filter(getenv("TRAIL_TEST_FILTER"));
    return cmocka_run_group_tests(tests, set_up, NULL);
}
