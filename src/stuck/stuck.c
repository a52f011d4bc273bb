/* Threads of processes, with names: see stuck.h. */
#include "stuck/stuck.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "collect/jit.h"
#include "collect/maps.h"
#include "collect/process.h"
#include "collect/stack_copy.h"
#include "collect/stack_guards.h"
#include "stuck/called.h"
#include "stuck/describe.h"
#include "symbols/modules.h"

#define MOST_FRAMES 256

/* What is needed to name a process's addresses. */
struct naming {
    const struct held *held;
    struct modules *files;
    struct unwind_files tables;
    trail_module *modules;
    size_t count, capacity;
    struct process process;
    struct jit jit;
    struct arena arena; /* names of generated code */
    bool failed;
};

/* MARK: Modules */

static void add_module(const trail_module *module, void *context)
{
    struct naming *naming = context;
    char *path = strndup(module->path.data, module->path.size);
    if (!path || !GROW(naming->modules, naming->capacity, naming->count + 1)) {
        free(path);
        naming->failed = true;
        return;
    }
    naming->modules[naming->count] = *module;
    naming->modules[naming->count++].path.data = path;
}

static const trail_module *find_module(void *context, uint64_t pc)
{
    const struct naming *naming = context;
    for (size_t i = 0; i < naming->count; i++) {
        if (pc >= naming->modules[i].start && pc < naming->modules[i].end)
            return &naming->modules[i];
    }
    return NULL;
}

/* Stands for generated code, which has no file and is walked by frame pointers. */
static const trail_module generated;

static bool find_generated(struct naming *naming, uint64_t address, trail_symbol *symbol)
{
    return jit_find(&naming->jit, &naming->arena, &naming->process, address, symbol);
}

static const trail_module *find_code(void *context, uint64_t pc)
{
    const trail_module *module = find_module(context, pc);
    trail_symbol symbol;
    return !module && find_generated(context, pc, &symbol) ? &generated : module;
}

/*
 * Returns the module of a variable: that of the file mapped there. Zero-initialised variables lie
 * in the mapping after it, which has no file.
 */
static const trail_module *module_of_data(const struct naming *naming, uint64_t address)
{
    const struct mapping *mappings = naming->held->mappings, *m;
    const char *path;
    m = held_mapping_of(naming->held, address);
    if (!m)
        return NULL;
    if (!*m->path && m > mappings && m[-1].end == m->start)
        m--;
    path = m->path;
    for (size_t i = 0; *path == '/' && i < naming->count; i++) {
        trail_string known = naming->modules[i].path;
        size_t length = strlen(path);
        if (known.size >= length && strcmp(known.data + known.size - length, path) == 0)
            return &naming->modules[i];
    }
    return NULL;
}

static bool name_variable(void *context, uint64_t address, char *text, size_t size)
{
    const struct naming *naming = context;
    const trail_module *module = module_of_data(naming, address);
    return module && modules_object(naming->files, module, address - module->bias, text, size);
}

/* In another mount namespace, for example a container's: the process's own view of its files. */
static void find_root(pid_t pid, char *root, size_t size)
{
    char own[512];
    (void)snprintf(root, size, "/proc/%d/root", pid);
    ssize_t n = readlink(root, own, sizeof own);
    char maps[64], ours[64], theirs[64];
    (void)snprintf(maps, sizeof maps, "/proc/%d/ns/mnt", pid);
    ssize_t a = readlink("/proc/self/ns/mnt", ours, sizeof ours);
    ssize_t b = readlink(maps, theirs, sizeof theirs);
    if (n == 1 && *own == '/' && a == b && a > 0 && memcmp(ours, theirs, (size_t)a) == 0)
        *root = '\0';
}

static bool naming_open(struct naming *naming, const struct held *held, trail_error *err)
{
    char root[64];
    *naming =
        (struct naming){.held = held, .process = {.pid = held->pid, .nested = held->is_nested}};
    naming->files = modules_open(NULL, 0, true, true);
    find_root(held->pid, root, sizeof root);
    if (naming->files)
        maps_each((int)held->pid, root, add_module, naming);
    if (!naming->files || naming->failed) {
        error_no_memory(err);
        return false;
    }
    return true;
}

static void naming_close(struct naming *naming)
{
    for (size_t i = 0; i < naming->count; i++)
        free((char *)naming->modules[i].path.data);
    free(naming->modules);
    jit_dispose(&naming->jit);
    arena_free(&naming->arena);
    unwind_files_free(&naming->tables);
    modules_close(naming->files);
}

/* MARK: Stacks */

static char *text_of(trail_string text)
{
    return strndup(text.size ? text.data : "", text.size);
}

/* Removes the version of a symbol: "pthread_join@GLIBC_2.34". */
static char *function_of(trail_string name)
{
    const char *at = name.size ? memchr(name.data, '@', name.size) : NULL;
    return strndup(name.size ? name.data : "", at ? (size_t)(at - name.data) : name.size);
}

static bool add_frame(struct stuck_thread *thread, const trail_symbol *symbol, uint64_t pc,
                      const trail_module *module)
{
    if (!GROW(thread->frames, thread->frame_capacity, thread->frame_count + 1))
        return false;
    struct stuck_frame *frame = &thread->frames[thread->frame_count++];
    *frame = (struct stuck_frame){.pc = pc, .address = module ? pc - module->bias : pc};
    const char *slash = module ? strrchr(module->path.data, '/') : NULL;
    frame->module = strdup(slash ? slash + 1 : "");
    if (symbol)
        frame->function = module ? function_of(symbol->function) : text_of(symbol->function);
    else
        frame->function = strdup("");
    frame->file = symbol ? text_of(symbol->file) : strdup("");
    frame->line = symbol ? (unsigned long)symbol->line : 0;
    return frame->module && frame->function && frame->file;
}

/*
 * Sets *symbols to the functions at an address, innermost first; names of generated code are stored
 * in `code`. Returns their number, 0: not known.
 */
static size_t resolve(struct naming *naming, const trail_module *module, uint64_t address,
                      trail_symbol *code, const trail_symbol **symbols)
{
    if (module)
        return modules_resolve(naming->files, module, address - module->bias, symbols);
    *symbols = code;
    return find_generated(naming, address, code) ? 1 : 0;
}

static bool add_pc(struct stuck_thread *thread, struct naming *naming, uint64_t pc)
{
    const trail_module *module = find_module(naming, pc - 1);
    const trail_symbol *symbols = NULL;
    trail_symbol code;
    size_t count = resolve(naming, module, pc - 1, &code, &symbols);
    bool good = count > 0 || add_frame(thread, NULL, pc - 1, module);
    for (size_t i = 0; good && i < count; i++)
        good = add_frame(thread, &symbols[i], pc - 1, module);
    return good;
}

/* Returns a copy of the name of the function called before a return address; NULL: not known. */
static char *called_name(struct naming *naming, uint64_t return_address)
{
    uint64_t at = called_function(naming->held->pid, return_address);
    const trail_module *module = at ? find_module(naming, at) : NULL;
    const trail_symbol *symbols = NULL;
    trail_symbol code;
    size_t count = at ? resolve(naming, module, at, &code, &symbols) : 0;
    return count > 0 ? function_of(symbols[count - 1].function) : NULL;
}

/*
 * A frame without a name whose code was not called by its caller was reached by a jump. It gets the
 * name of the function that was called. `outer` is the index of the caller's innermost frame.
 */
static void name_by_call(struct stuck_thread *thread, struct naming *naming, size_t outer)
{
    struct stuck_frame *frame = outer > 0 ? &thread->frames[outer - 1] : NULL;
    if (!frame || *frame->function || outer > NEAR_FRAMES)
        return;
    char *name = called_name(naming, thread->frames[outer].pc + 1);
    if (!name)
        return;
    free(frame->function);
    frame->function = name;
}

static struct cpu_sample sample_of(const struct held_thread *held)
{
    return (struct cpu_sample){.pc = held->pc,
                               .sp = held->sp,
                               .fp = held->fp,
                               .stack = held->stack,
                               .stack_size = held->stack_size};
}

static bool add_stack(struct stuck_thread *thread, struct naming *naming)
{
    const struct held_thread *held = thread->held;
    struct cpu_sample sample = sample_of(held);
    uint64_t pcs[MOST_FRAMES];
    size_t count = 0;
    bool good = true;
    if (held->is_copied)
        count = stack_copy_walk(&naming->tables, &sample, find_code, naming, pcs, MOST_FRAMES);
    for (size_t i = 0; good && i < count; i++) {
        size_t outer = thread->frame_count;
        good = add_pc(thread, naming, pcs[i]);
        if (good)
            name_by_call(thread, naming, outer);
    }
    thread->is_cut = count == MOST_FRAMES || (held->is_copied && !held->fp && count < 3);
    return good;
}

/* MARK: Holders by the variables in stacks */

/* A thread, and the locks that its guards show, which are inferred to be held. */
struct guarding {
    struct stuck_process *process;
    struct stuck_thread *thread;
    struct guarded_lock locks[MOST_GUARDS];
    size_t count;
};

static bool has_lock(const struct guarding *holder, uint64_t lock)
{
    for (size_t i = 0; i < holder->count; i++) {
        if (holder->locks[i].lock == lock)
            return true;
    }
    return false;
}

/* Whether the thread waits for a lock that the holder has, and both do not wait for the same
 * lock. */
static bool waits_for_holder(const struct stuck_thread *thread, const struct guarding *holder)
{
    return thread->lock && thread != holder->thread && holder->thread->lock != thread->lock &&
           has_lock(holder, thread->lock);
}

static void find_guards(struct naming *naming, const struct held_thread *held,
                        struct guarding *guarding)
{
    struct cpu_sample sample = sample_of(held);
    guarding->count = 0;
    if (held->is_copied)
        guarding->count = stack_guards(&naming->tables, &sample, find_code, naming, modules_guards,
                                       naming->files, guarding->locks, MOST_GUARDS);
}

/* If there is a second holder, neither is used. */
static void set_holder(struct stuck_thread *waiter, const struct guarding *holder)
{
    struct stuck_thread *thread = holder->thread;
    waiter->holder.is_inferred = true;
    waiter->holder.tid = waiter->holder.tid ? -1 : thread->held->tid;
    for (size_t i = 0; i < holder->count; i++) {
        if (holder->locks[i].lock == waiter->lock &&
            holder->locks[i].frame_end > thread->guards_end)
            thread->guards_end = holder->locks[i].frame_end;
    }
}

/* Threads that wait for a holder that was not seen at the same instant, followed by the holder. */
struct unsure {
    struct held_sleep *sleeps;
    struct stuck_thread **waiters;
    size_t count;
};

static void add_if_asleep(struct unsure *unsure, pid_t pid, struct stuck_thread *thread,
                          int64_t deadline)
{
    struct held_sleep *sleep = &unsure->sleeps[unsure->count];
    *sleep = (struct held_sleep){pid, thread->held, 0};
    unsure->waiters[unsure->count] = thread;
    unsure->count += held_sleeps(sleep, deadline);
}

/* Whether the thread waits for a futex that it did not wait for before, perhaps for a condition. */
static bool waits_anew(const struct held_thread *now, const struct held_thread *before)
{
    return now->in_call && now->call == SYS_futex &&
           (!before->in_call || before->call != SYS_futex || before->sp != now->sp ||
            before->arguments[0] != now->arguments[0]);
}

/*
 * Sets the holder for waiters that sleep while the holder is examined again and has the lock. A
 * holder that cannot be stopped must sleep as well.
 */
static void confirm_holder(struct naming *naming, struct guarding *holder, struct unsure *unsure)
{
    size_t waiters = unsure->count;
    struct held_thread now;
    struct held_sleep *own = &unsure->sleeps[waiters];
    *own = (struct held_sleep){holder->process->held.pid, holder->thread->held, 0};
    bool sleeps = !holder->thread->held->group && held_sleeps(own, 0);
    if (!held_take_again(&holder->process->held, holder->thread->held, &now))
        now.is_copied = false;
    find_guards(naming, &now, holder);
    if ((!now.group && !(sleeps && held_sleeps_on(own))) || waits_anew(&now, holder->thread->held))
        holder->count = 0;
    for (size_t i = 0; i < waiters; i++) {
        if (has_lock(holder, unsure->waiters[i]->lock) && held_sleeps_on(&unsure->sleeps[i]))
            set_holder(unsure->waiters[i], holder);
    }
    free(now.stack);
}

/* False: out of memory. */
static bool infer_holder(struct naming *naming, struct guarding *holder, int64_t deadline)
{
    struct stuck_process *process = holder->process;
    size_t group = holder->thread->held->group, count = process->held.count;
    struct unsure unsure = {.sleeps = calloc(count + 1, sizeof *unsure.sleeps)};
    unsure.waiters = calloc(count + 1, sizeof(void *));
    bool good = unsure.sleeps && unsure.waiters;
    for (size_t i = 0; good && i < count; i++) {
        struct stuck_thread *thread = &process->threads[i];
        if (!waits_for_holder(thread, holder))
            continue;
        if (group && thread->held->group == group)
            set_holder(thread, holder);
        else
            add_if_asleep(&unsure, process->held.pid, thread, deadline);
    }
    if (unsure.count > 0)
        confirm_holder(naming, holder, &unsure);
    free(unsure.sleeps);
    free(unsure.waiters);
    return good;
}

/* Whether any thread waits for a lock whose holder must be inferred. */
static bool is_any_guarded(const struct stuck_process *process)
{
    for (size_t i = 0; i < process->held.count; i++) {
        if (process->threads[i].lock)
            return true;
    }
    return false;
}

static bool infer_holders(struct stuck_process *process, struct naming *naming)
{
    int64_t deadline = now_ns() + held_sleep_limit(process->held.limit_ns);
    bool good = true;
    if (!is_any_guarded(process))
        return true;
    for (size_t i = 0; good && i < process->held.count; i++) {
        struct guarding holder = {.process = process, .thread = &process->threads[i]};
        /* When a mutex is released to wait for a condition, its guard remains. */
        if (holder.thread->kind == WIRE_WAIT_CONDITION)
            continue;
        find_guards(naming, holder.thread->held, &holder);
        if (holder.count > 0)
            good = infer_holder(naming, &holder, deadline);
    }
    return good;
}

static bool name_threads(struct stuck *stuck, struct stuck_process *process, trail_error *err)
{
    struct naming naming;
    const struct describe with = {&process->held, &stuck->ends, name_variable, &naming};
    bool good = naming_open(&naming, &process->held, err);
    for (size_t i = 0; good && i < process->held.count; i++) {
        struct stuck_thread *thread = &process->threads[i];
        thread->held = &process->held.threads[i];
        good = add_stack(thread, &naming);
        good = good && !naming.jit.no_memory;
        if (good)
            describe_thread(thread, &with);
        else
            error_no_memory(err);
    }
    if (good && !infer_holders(process, &naming)) {
        error_no_memory(err);
        good = false;
    }
    naming_close(&naming);
    return good;
}

static void free_process(struct stuck_process *process);

static bool fill_process(struct stuck *stuck, struct stuck_process *process, pid_t pid,
                         trail_error *err)
{
    if (!held_take(&process->held, pid, stuck->limit_ns, err))
        return false;
    process->threads = calloc(process->held.count + 1, sizeof *process->threads);
    if (process->threads)
        return name_threads(stuck, process, err);
    error_no_memory(err);
    return false;
}

struct stuck_process *stuck_process_of(const struct stuck *stuck, pid_t pid)
{
    for (size_t i = 0; i < stuck->count; i++) {
        if (stuck->processes[i].held.pid == pid)
            return &stuck->processes[i];
    }
    return NULL;
}

bool stuck_add(struct stuck *stuck, pid_t pid, trail_error *err)
{
    if (!GROW(stuck->processes, stuck->capacity, stuck->count + 1)) {
        error_no_memory(err);
        return false;
    }
    struct stuck_process *process = &stuck->processes[stuck->count];
    *process = (struct stuck_process){0};
    if (fill_process(stuck, process, pid, err)) {
        stuck->count++;
        return true;
    }
    free_process(process);
    return false;
}

/* MARK: Releasing */

static void free_thread(struct stuck_thread *thread)
{
    for (size_t i = 0; i < thread->frame_count; i++) {
        free(thread->frames[i].function);
        free(thread->frames[i].file);
        free(thread->frames[i].module);
    }
    free(thread->frames);
}

static void free_process(struct stuck_process *process)
{
    for (size_t i = 0; process->threads && i < process->held.count; i++)
        free_thread(&process->threads[i]);
    free(process->threads);
    held_free(&process->held);
}

void stuck_free(struct stuck *stuck)
{
    for (size_t i = 0; i < stuck->count; i++)
        free_process(&stuck->processes[i]);
    free(stuck->processes);
    free(stuck->cycles);
    idmap_free(&stuck->by_tid);
    ends_free(&stuck->ends);
    *stuck = (struct stuck){0};
}
