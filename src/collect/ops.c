/* What an op means for its thread, and for those whom it lets in: see model.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/grow.h"
#include "collect/model.h"

/* MARK: Threads */

static void do_start(struct collect *c, struct thread *thread, int64_t ns)
{
    bool first = c->summary.threads++ == 0;
    thread->counted = true;
    if (++c->live > c->summary.most_threads)
        c->summary.most_threads = c->live;
    state_run(c, thread, ns);
    if (first)
        EVENT(c, thread, ns, V2_ProcsChange, (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), 0);
}

static void do_create(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    struct thread *child = thread_of(c, op->object);
    state_run(c, thread, ns);
    if (!child || child->state != G_NONE || child == thread)
        return;
    child->routine = op->object2;
    EVENT(c, thread, ns, V2_GoCreate, child->serial, names_thread(c, child),
          names_stack(c, op->stack, 0));
    state_enter(c, child, G_RUNNABLE, ns);
}

/*
 * What is waited for, as a log in front of the wait: key "wait", text "mutex stats_mu", "read /var/lib/x",
 * "accept 127.0.0.1:8080", and where the name of a descriptor is not known "read fd 7". Readers that do not know
 * it show it as a log.
 */
static void log_wait(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    const char *words = wait_kinds[op->wait].words;
    char text[600];
    if (op->wait == SHM_JOIN)
        return;
    if (op->name)
        snprintf(text, sizeof text, "%s %s", words, op->name);
    else if (op->detail)
        snprintf(text, sizeof text, "%s fd %" PRIu32, words, op->detail - 1);
    else if (op->object && !shm_is_descriptor(op->object) && op->wait != SHM_OMP_WORK)
        snprintf(text, sizeof text, "%s %s", words,
                 shm_is_lock(op->wait) ? names_lock(c, op->object, op->object2, op->stack)
                                       : names_object(c, op->object));
    else if (op->wait == SHM_KERNEL || op->wait == SHM_OMP_WORK)
        snprintf(text, sizeof text, "%s", words);
    else
        return;
    EVENT(c, thread, ns, V2_UserLog, 0, names_string(c, "wait"), names_string(c, text), 0);
}

/*
 * A hold that somebody waited for, or that was long: key "held", text "mutex stats_mu 110ms", where it was taken.
 * With "~" its begin is known to the millisecond: locks were taken very often then.
 */
static void log_hold(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    int64_t since = ticks_to_ns(c->ticks, op->object2);
    char text[640], length[DURATION_SIZE];
    if (!op->object2 || thread->state != G_RUNNING || since > ns ||
        (!op->release->taken && op->time - op->object2 < area_hold_ticks(c->area)))
        return;
    (void)duration_text(length, ns - since, DURATION_LOG);
    snprintf(text, sizeof text, "%s %s %s%s", wait_kinds[op->wait].words,
             names_lock(c, op->object, op->pc, op->stack), op->flags & SHM_COARSE ? "~" : "",
             length);
    EVENT(c, thread, ns, V2_UserLog, 0, names_string(c, "held"), names_string(c, text),
          names_hold(c, op->pc, op->stack));
}

static struct wait_site *site_of(struct collect *c, uint64_t stack, uint8_t wait)
{
    uint64_t key = (uint64_t)wait << 56 ^ stack;
    struct wait_site *site = idmap_find(&c->sites, key);
    if (site)
        return site;
    site = arena_alloc(&c->arena, sizeof *site);
    if (!site || !idmap_put(&c->sites, key, site)) {
        collect_no_memory(c);
        return NULL;
    }
    *site = (struct wait_site){.stack = stack, .wait = wait};
    return site;
}

void op_block(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    uint64_t stack = names_stack(c, op->stack, op->pc);
    state_run(c, thread, ns);
    log_wait(c, thread, op, ns);
    thread->wait = op->wait;
    thread->wait_pc = op->pc;
    thread->site = site_of(c, op->stack, op->wait);
    thread->waker_stack = 0;
    thread->current_wait = op->wait_number;
    c->summary.waits++;
    if (thread->proc < 0)
        return; /* memory is out */
    if (wait_is_syscall(op->wait)) {
        EVENT(c, thread, ns, V2_GoSyscallBegin, ++c->procs[thread->proc].seq, stack);
        state_give_proc(c, thread, ns);
        state_enter(c, thread, G_SYSCALL, ns);
    } else {
        EVENT(c, thread, ns, V2_GoBlock, names_string(c, wait_kinds[op->wait].reason), stack);
        state_give_proc(c, thread, ns);
        state_enter(c, thread, G_WAITING, ns);
    }
}

/*
 * Where the kernel tells, a call is a wait only if the thread went off its CPU by itself before the end: what it
 * needs the CPU for, or others take it for, is none. But who spins waits on the CPU.
 */
static void do_block(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    bool on = c->options.switches && !thread->oncpu.off;
    thread->in_call = true;
    thread->call = *op;
    if (on && !wait_is_spinning(op->wait) && !oncpu_sleeps(c, thread, op->time))
        return;
    op_block(c, thread, op, ns);
    if (on)
        thread->oncpu.on_since = ns;
}

/* Lets in who waits since before; frees the list. */
static void let_in_all(struct collect *c, struct thread *thread, struct woken *woken,
                       uint64_t stack, int64_t ns)
{
    while (woken) {
        struct woken *next = woken->next;
        struct thread *other = thread_of(c, woken->serial);
        if (other && other->state == G_WAITING && other->current_wait == woken->wait_number)
            state_unblock(c, thread, other, ns, stack);
        free(woken);
        woken = next;
    }
}

/*
 * The last thread has arrived at the end of OpenMP's parallel region. Its workers do not return from there before
 * the next one begins: from here on they wait for that.
 */
static void end_parallel_region(struct collect *c, struct thread *thread, const struct op *op,
                                int64_t ns)
{
    for (size_t i = 0; c->threads.slots && i <= c->threads.mask; i++) {
        struct thread *worker = c->threads.slots[i].value;
        bool on;
        if (!worker || worker == thread || worker->state != G_WAITING || !worker->in_call ||
            worker->call.wait != SHM_OMP_JOIN || worker->call.object != op->object)
            continue;
        on = worker->oncpu.on_since >= 0;
        state_unblock(c, thread, worker, ns, op->stack);
        state_run(c, worker, ++c->last_ns);
        worker->call.wait = SHM_OMP_WORK;
        op_block(c, worker, &worker->call, c->last_ns);
        if (on)
            worker->oncpu.on_since = c->last_ns;
    }
}

static void do_release(struct collect *c, struct thread *thread, struct op *op, int64_t ns)
{
    if (!op->release)
        return;
    /* Who waits may give up a lock, a condition's mutex, in the midst of its wait: as a signal handler does. */
    if (thread->state == G_NONE)
        state_run(c, thread, ns);
    log_hold(c, thread, op, ns);
    let_in_all(c, thread, op->release->woken, op->stack, ns);
    op->release->woken = NULL;
    op->release->written = true;
    if (op->wait == SHM_OMP_JOIN)
        end_parallel_region(c, thread, op, ns);
}

void op_go_on(struct collect *c, struct thread *thread, const struct op *wake, int64_t ns)
{
    struct thread *waker = wake && wake->object ? thread_of(c, wake->object) : NULL;
    /* Who let it in was told too late to be written at its time. */
    if (waker && waker != thread && thread->state == G_WAITING) {
        state_unblock(c, waker, thread, ns, wake->stack);
        ns = ++c->last_ns;
    }
    state_run(c, thread, ns);
}

void op_exit(struct collect *c, struct thread *thread, int64_t ns)
{
    /* One that the trace does not know, as nothing was told of it, ends without a word. */
    if (thread->state != G_NONE) {
        state_run(c, thread, ns);
        let_in_all(c, thread, thread->joiners, 0, ns);
        thread->joiners = NULL;
        state_event(c, thread, ns, V2_GoDestroy, 0, NULL);
        state_give_proc(c, thread, ns);
        (void)idmap_remove(&c->ms, thread->m);
    }
    state_enter(c, thread, G_DEAD, ns);
    c->live -= thread->counted;
    thread->next_dead = c->dead;
    c->dead = thread;
}

/* MARK: Annotations */

/* What an annotation means: the words of the program, which may change them later, as they were at its begin. */
static const char *keep_name(struct collect *c, uint64_t key, const char *text, size_t size)
{
    char *name = arena_copy(&c->arena, text, size);
    if (!name || !idmap_put(&c->texts, key, name)) {
        collect_no_memory(c);
        return "";
    }
    return name;
}

static const char *name_of(struct collect *c, uint32_t number)
{
    uint64_t key = (uint64_t)c->image << 32 | number;
    const char *known = idmap_find(&c->texts, key);
    char text[SHM_TEXT_MAX];
    size_t size;
    if (known)
        return known;
    size = area_text(c->area, number, text);
    return size ? keep_name(c, key, text, size) : "";
}

/* The events of a task name it by its number, which another program of the process may use again. */
static uint64_t task_of(const struct collect *c, uint64_t number)
{
    return number ? number + ((uint64_t)c->image << 40) : 0;
}

/* "parallel: main (file.c:7)": a name that has its place in it. */
static uint64_t name_with_place(struct collect *c, const struct op *op)
{
    char place[200], name[300];
    const char *text = name_of(c, op->text);
    names_place(c, op->stack, place, sizeof place);
    snprintf(name, sizeof name, "%s%s%s", text, *place ? ": " : "", place);
    return names_string(c, name);
}

/* Readers refuse a second task with the number of one that has not ended. */
static void begin_task(struct collect *c, struct thread *thread, const struct op *op,
                       uint64_t stack, int64_t ns)
{
    uint64_t task = task_of(c, op->object);
    if (task == 0 || task == UINT64_MAX || idmap_find(&c->tasks, task)) {
        collect_damage(c);
        return;
    }
    if (!idmap_put(&c->tasks, task, c))
        collect_no_memory(c);
    EVENT(c, thread, ns, V2_UserTaskBegin, task, task_of(c, op->object2),
          op->flags & SHM_WITH_PLACE ? name_with_place(c, op)
                                     : names_string(c, name_of(c, op->text)),
          stack);
}

static void end_task(struct collect *c, struct thread *thread, const struct op *op, uint64_t stack,
                     int64_t ns)
{
    uint64_t task = task_of(c, op->object);
    (void)idmap_remove(&c->tasks, task);
    EVENT(c, thread, ns, V2_UserTaskEnd, task, stack);
}

static void begin_region(struct collect *c, struct thread *thread, const struct op *op,
                         uint64_t stack, int64_t ns)
{
    struct open_region region = {task_of(c, op->object), op->text};
    if (!GROW(thread->regions, thread->region_room, thread->region_count + 1)) {
        collect_no_memory(c);
        return;
    }
    thread->regions[thread->region_count++] = region;
    EVENT(c, thread, ns, V2_UserRegionBegin, region.task, names_string(c, name_of(c, op->text)),
          stack);
}

/* One that is not the innermost region's end is left out. */
static void end_region(struct collect *c, struct thread *thread, const struct op *op,
                       uint64_t stack, int64_t ns)
{
    const struct open_region *region;
    if (thread->region_count == 0)
        return;
    region = &thread->regions[thread->region_count - 1];
    if (region->task != task_of(c, op->object) || region->text != op->text)
        return;
    thread->region_count--;
    EVENT(c, thread, ns, V2_UserRegionEnd, region->task, names_string(c, name_of(c, op->text)),
          stack);
}

static void do_annotation(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    uint64_t stack = names_stack(c, op->stack, 0);
    state_run(c, thread, ns);
    switch (op->record) {
    case SHM_TASK_BEGAN:
        begin_task(c, thread, op, stack, ns);
        break;
    case SHM_TASK_ENDED:
        end_task(c, thread, op, stack, ns);
        break;
    case SHM_REGION_BEGAN:
        begin_region(c, thread, op, stack, ns);
        break;
    case SHM_REGION_ENDED:
        end_region(c, thread, op, stack, ns);
        break;
    case SHM_LOGGED:
        EVENT(c, thread, ns, V2_UserLog, task_of(c, op->object),
              names_string(c, name_of(c, op->text)),
              names_string(c, op->message ? op->message : ""), stack);
        break;
    default:
        break;
    }
    free(op->message);
}

/* A thread that has ended, as the kernel said or its own records, does nothing more. */
static void drop(struct collect *c, struct op *op)
{
    /* The end of a wait is told by the record of its begin. */
    if (op->kind != OP_EXIT && op->kind != OP_NOTHING && op->kind != OP_WAKE)
        collect_damage(c);
    if (op->release)
        op->release->written = true;
    free(op->message);
}

/* MARK: Each op */

void op_do(struct collect *c, struct thread *thread, struct op *op, int64_t ns)
{
    if (thread->state == G_DEAD) {
        drop(c, op);
        return;
    }
    switch (op->kind) {
    case OP_START:
        do_start(c, thread, ns);
        break;
    case OP_CREATE:
        do_create(c, thread, op, ns);
        break;
    case OP_NOTHING:
        break;
    case OP_BLOCK:
        do_block(c, thread, op, ns);
        break;
    case OP_RELEASE:
        do_release(c, thread, op, ns);
        break;
    case OP_WAKE:
        thread->in_call = false;
        op_go_on(c, thread, op, ns);
        break;
    case OP_EXIT:
        op_exit(c, thread, ns);
        break;
    case OP_FORGET:
        names_forget_object(c, op->object);
        break;
    case OP_ANNOTATION:
        do_annotation(c, thread, op, ns);
        break;
    }
}
