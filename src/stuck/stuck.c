/* Names, holders and cycles: see stuck.h. */
#include "stuck/stuck.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/grow.h"
#include "collect/jit.h"
#include "collect/maps.h"
#include "collect/process.h"
#include "collect/stack_copy.h"
#include "stuck/called.h"
#include "stuck/describe.h"
#include "symbols/modules.h"

#define MOST_FRAMES 256

/* What is needed while a process's addresses get names. */
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

/* Of generated code: it has no file, so its frames are those of frame pointers. */
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
 * Returns the module of a variable: that of the file which is mapped there. Variables that begin as
 * zeros lie in the mapping behind it, which has no file.
 */
static const trail_module *module_of_data(const struct naming *naming, uint64_t address)
{
    const struct held_mapping *mappings = naming->held->mappings, *m;
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

/* Of another mount namespace, as a container's: the process's own view of its files. */
static void find_root(pid_t pid, char *root, size_t size)
{
    char own[512];
    ssize_t n;
    (void)snprintf(root, size, "/proc/%d/root", pid);
    n = readlink(root, own, sizeof own);
    char maps[64], ours[64], theirs[64];
    ssize_t a, b;
    (void)snprintf(maps, sizeof maps, "/proc/%d/ns/mnt", pid);
    a = readlink("/proc/self/ns/mnt", ours, sizeof ours);
    b = readlink(maps, theirs, sizeof theirs);
    if (n == 1 && *own == '/' && a == b && a > 0 && memcmp(ours, theirs, (size_t)a) == 0)
        *root = '\0';
}

static bool naming_open(struct naming *naming, const struct held *held, trail_error *err)
{
    char root[64];
    *naming = (struct naming){.held = held, .process = {held->pid, held->is_nested}};
    naming->files = modules_open(NULL, 0, true);
    find_root(held->pid, root, sizeof root);
    if (naming->files)
        maps_each((int)held->pid, root, add_module, naming);
    if (!naming->files || naming->failed) {
        error_set(err, TRAIL_NO_MEMORY, "out of memory");
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

/* Without the version of a symbol: "pthread_join@GLIBC_2.34". */
static char *function_of(trail_string name)
{
    const char *at = name.size ? memchr(name.data, '@', name.size) : NULL;
    return strndup(name.size ? name.data : "", at ? (size_t)(at - name.data) : name.size);
}

static bool add_frame(struct stuck_thread *thread, const trail_symbol *symbol, uint64_t pc,
                      const trail_module *module)
{
    struct stuck_frame *frame;
    const char *slash;
    if (!GROW(thread->frames, thread->frame_capacity, thread->frame_count + 1))
        return false;
    frame = &thread->frames[thread->frame_count++];
    *frame = (struct stuck_frame){.pc = pc, .address = module ? pc - module->bias : pc};
    slash = module ? strrchr(module->path.data, '/') : NULL;
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
 * Sets *symbols to the functions at an address, innermost first; `code` has that of generated code.
 * Returns their number, 0: not known.
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

/* Returns a copy of the name of the function that the call before a return address was made to;
 * NULL: not known. */
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
 * A frame without a name, whose code its caller did not call: a jump led there. It gets the name of
 * the function that was called. `outer` is the index of the caller's innermost frame.
 */
static void name_by_call(struct stuck_thread *thread, struct naming *naming, size_t outer)
{
    struct stuck_frame *frame = outer > 0 ? &thread->frames[outer - 1] : NULL;
    char *name;
    if (!frame || *frame->function || outer > NEAR_FRAMES)
        return;
    name = called_name(naming, thread->frames[outer].pc + 1);
    if (!name)
        return;
    free(frame->function);
    frame->function = name;
}

static bool add_stack(struct stuck_thread *thread, struct naming *naming)
{
    const struct held_thread *held = thread->held;
    struct cpu_sample sample = {.pc = held->pc,
                                .sp = held->sp,
                                .fp = held->fp,
                                .stack = held->stack,
                                .stack_size = held->stack_size};
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

static bool name_threads(struct stuck_process *process, trail_error *err)
{
    struct naming naming;
    bool good = naming_open(&naming, &process->held, err);
    for (size_t i = 0; good && i < process->held.count; i++) {
        struct stuck_thread *thread = &process->threads[i];
        thread->held = &process->held.threads[i];
        good = add_stack(thread, &naming);
        good = good && !naming.jit.no_memory;
        if (good)
            describe_thread(thread, name_variable, &naming);
        else
            error_set(err, TRAIL_NO_MEMORY, "out of memory");
    }
    naming_close(&naming);
    return good;
}

bool stuck_add(struct stuck *stuck, pid_t pid, trail_error *err)
{
    struct stuck_process *process;
    if (!GROW(stuck->processes, stuck->capacity, stuck->count + 1)) {
        error_set(err, TRAIL_NO_MEMORY, "out of memory");
        return false;
    }
    process = &stuck->processes[stuck->count++];
    *process = (struct stuck_process){0};
    if (!held_take(&process->held, pid, stuck->limit_ns, err))
        return false;
    process->threads = calloc(process->held.count + 1, sizeof *process->threads);
    if (!process->threads) {
        error_set(err, TRAIL_NO_MEMORY, "out of memory");
        return false;
    }
    return name_threads(process, err);
}

/* MARK: Holders and cycles */

static bool list_tids(struct stuck *stuck)
{
    for (size_t i = 0; i < stuck->count; i++) {
        struct stuck_process *process = &stuck->processes[i];
        for (size_t j = 0; j < process->held.count; j++) {
            uint64_t tid = (uint64_t)process->held.threads[j].tid;
            if (!idmap_put(&stuck->by_tid, tid, &process->threads[j]))
                return false;
        }
    }
    return true;
}

/* A process in a PID namespace of its own writes thread IDs of that namespace. */
static void connect(struct stuck *stuck, struct stuck_process *process, struct stuck_thread *thread)
{
    struct process own = {process->held.pid, process->held.is_nested};
    struct stuck_holder *holder = &thread->holder;
    thread->process = process;
    holder->own = holder->tid;
    if (holder->tid > 0 && own.nested)
        holder->tid = (pid_t)process_thread(&own, (uint32_t)holder->tid);
    if (holder->tid <= 0)
        return;
    holder->thread = idmap_find(&stuck->by_tid, (uint64_t)holder->tid);
    if (holder->thread)
        holder->thread->waiters++;
    else if (holder->is_guess)
        holder->tid = 0;
}

static struct stuck_thread *next_of(const struct stuck_thread *thread)
{
    return thread->state == STUCK_WAITS ? thread->holder.thread : NULL;
}

/* Returns a thread of the cycle that following holders leads to; NULL: none that is new. */
static struct stuck_thread *find_cycle(struct stuck_thread *from, size_t walk)
{
    struct stuck_thread *at = from;
    while (at && !at->walk) {
        at->walk = walk;
        at = next_of(at);
    }
    return at && at->walk == walk ? at : NULL;
}

static size_t length_of(const struct stuck_thread *first)
{
    size_t length = 1;
    for (const struct stuck_thread *at = next_of(first); at != first; at = next_of(at))
        length++;
    return length;
}

/* All threads of one process, which were stopped together. */
static bool is_of_one_instant(const struct stuck_thread *first)
{
    const struct stuck_thread *at = first;
    do {
        if (at->process != first->process || at->process->held.groups > 1)
            return false;
        at = next_of(at);
    } while (at != first);
    return true;
}

static bool name_nothing(void *context, uint64_t address, char *text, size_t size)
{
    (void)context, (void)address, (void)text, (void)size;
    return false;
}

/* Whether the thread waits for the same thread, by what its object is now. */
static bool has_same_holder(const struct stuck_thread *thread, const struct held_memory *object)
{
    struct held_thread held = *thread->held;
    struct stuck_thread now = *thread;
    held.object = *object;
    now.held = &held;
    now.holder = (struct stuck_holder){0};
    describe_thread(&now, name_nothing, NULL);
    return now.state == STUCK_WAITS && now.holder.tid == thread->holder.own;
}

/* Looks once more at the threads of a cycle. Sets *is_there; false: out of memory. */
static bool confirm(const struct stuck *stuck, struct stuck_thread *first, bool *is_there)
{
    size_t length = length_of(first);
    struct held_again *list = calloc(length, sizeof *list);
    struct held_memory *objects = calloc(length, sizeof *objects);
    const struct stuck_thread *at = first;
    bool good = list && objects;
    for (size_t i = 0; good && i < length; i++, at = next_of(at))
        list[i] = (struct held_again){at->process->held.pid, at->held, &objects[i]};
    *is_there = good && held_look_again(list, length, stuck->limit_ns);
    for (size_t i = 0; *is_there && i < length; i++, at = next_of(at))
        *is_there = has_same_holder(at, &objects[i]);
    free(list);
    free(objects);
    return good;
}

static bool add_cycle(struct stuck *stuck, struct stuck_thread *first)
{
    struct stuck_thread *at = first;
    bool is_there = true;
    if (!is_of_one_instant(first) && !confirm(stuck, first, &is_there))
        return false;
    if (!is_there)
        return true;
    if (!GROW(stuck->cycles, stuck->cycle_capacity, stuck->cycle_count + 1))
        return false;
    stuck->cycles[stuck->cycle_count++] = first;
    do {
        at->cycle = (unsigned)stuck->cycle_count;
        at = next_of(at);
    } while (at != first);
    return true;
}

static bool find_cycles(struct stuck *stuck)
{
    size_t walks = 0;
    for (size_t i = 0; i < stuck->count; i++) {
        for (size_t j = 0; j < stuck->processes[i].held.count; j++) {
            struct stuck_thread *cycle = find_cycle(&stuck->processes[i].threads[j], ++walks);
            if (cycle && !add_cycle(stuck, cycle))
                return false;
        }
    }
    return true;
}

bool stuck_connect(struct stuck *stuck, trail_error *err)
{
    bool good = list_tids(stuck);
    for (size_t i = 0; good && i < stuck->count; i++) {
        struct stuck_process *process = &stuck->processes[i];
        for (size_t j = 0; j < process->held.count; j++)
            connect(stuck, process, &process->threads[j]);
    }
    good = good && find_cycles(stuck);
    if (!good)
        error_set(err, TRAIL_NO_MEMORY, "out of memory");
    return good;
}

static void free_thread(struct stuck_thread *thread)
{
    for (size_t i = 0; i < thread->frame_count; i++) {
        free(thread->frames[i].function);
        free(thread->frames[i].file);
        free(thread->frames[i].module);
    }
    free(thread->frames);
}

void stuck_free(struct stuck *stuck)
{
    for (size_t i = 0; i < stuck->count; i++) {
        struct stuck_process *process = &stuck->processes[i];
        for (size_t j = 0; process->threads && j < process->held.count; j++)
            free_thread(&process->threads[j]);
        free(process->threads);
        held_free(&process->held);
    }
    free(stuck->processes);
    free(stuck->cycles);
    idmap_free(&stuck->by_tid);
    *stuck = (struct stuck){0};
}
