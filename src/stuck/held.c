/* Stopping and copying: see held.h. */
#include "stuck/held.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/small_file.h"
#include "stuck/tracer.h"

/* MARK: What /proc says */

/* The character behind the name, which may contain anything (proc(5), stat). */
static char state_of(pid_t pid, pid_t tid)
{
    char path[64], text[512];
    const char *end;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    if (!small_file_text(path, text, sizeof text) || !(end = strrchr(text, ')')) || end[1] != ' ')
        return '\0';
    return end[2];
}

/*
 * Reads the call that a thread sleeps in: "NUMBER ARG... SP PC"; "-1 SP PC" outside of one; or
 * "running". False: it runs, or this is not known.
 */
static bool read_call(pid_t pid, struct held_thread *thread)
{
    char path[64], text[256];
    uint64_t *a = thread->arguments;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", pid, thread->tid);
    if (!small_file_text(path, text, sizeof text))
        return false;
    if (sscanf(text,
               "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
               " %" SCNx64 " %" SCNx64,
               &thread->call, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &thread->sp,
               &thread->pc) != 9)
        return false;
    thread->in_call = thread->call >= 0;
    return thread->in_call;
}

bool held_is_ended_by_stop(long call)
{
    static const long calls[] = {
#ifdef SYS_epoll_wait
        SYS_epoll_wait,
#endif
#ifdef SYS_semop
        SYS_semop,
#endif
        SYS_epoll_pwait,    SYS_rt_sigtimedwait, SYS_semtimedop, SYS_io_getevents,
#ifdef SYS_epoll_pwait2
        SYS_epoll_pwait2,
#endif
#ifdef SYS_io_pgetevents
        SYS_io_pgetevents,
#endif
#ifdef SYS_io_uring_enter
        SYS_io_uring_enter,
#endif
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (call == calls[i])
            return true;
    }
    return false;
}

/* MARK: Memory */

static size_t read_memory(pid_t pid, uint64_t at, void *to, size_t size)
{
    struct iovec here = {to, size}, there = {(void *)(uintptr_t)at, size};
    ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
    return n > 0 ? (size_t)n : 0;
}

bool held_copy(const struct held_memory *memory, uint64_t at, void *to, size_t size)
{
    if (at < memory->at || size > memory->size || at - memory->at > memory->size - size)
        return false;
    memcpy(to, memory->bytes + (at - memory->at), size);
    return true;
}

const struct held_mapping *held_mapping_of(const struct held *held, uint64_t address)
{
    for (size_t i = 0; i < held->mapping_count; i++) {
        const struct held_mapping *m = &held->mappings[i];
        if (address >= m->start && address < m->end)
            return m;
    }
    return NULL;
}

/* Which argument of the call is the address of its object. */
static int object_argument(const struct held_thread *thread)
{
    switch (thread->call) {
    case SYS_connect:
        return 1;
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6: /* descriptors that can be read, or else be written */
        return thread->arguments[1] ? 1 : 2;
    default:
        return 0;
    }
}

/* Around a futex, and where polled descriptors and addresses begin. */
static void copy_object(pid_t pid, struct held_thread *thread)
{
    struct held_memory *object = &thread->object;
    uint64_t at = thread->arguments[object_argument(thread)];
    if (at < HELD_AROUND)
        return;
    object->at = at - HELD_AROUND;
    object->size = read_memory(pid, object->at, object->bytes, sizeof object->bytes);
    if (object->size == 0) { /* the first half may not be mapped */
        object->at = at;
        object->size = read_memory(pid, at, object->bytes, HELD_AROUND);
    }
}

static void copy_stack(const struct held *held, struct held_thread *thread)
{
    const struct held_mapping *stack = held_mapping_of(held, thread->sp);
    /* A thread that was made since the mappings were read. */
    size_t size = stack ? (size_t)(stack->end - thread->sp) : 4096 - (size_t)(thread->sp % 4096);
    if (size > HELD_STACK_SIZE)
        size = HELD_STACK_SIZE;
    thread->stack = malloc(size);
    thread->stack_size =
        thread->stack ? read_memory(held->pid, thread->sp, thread->stack, size) : 0;
    thread->is_copied = true;
    if (thread->in_call)
        copy_object(held->pid, thread);
}

/* MARK: Stopping */

struct stop {
    bool seized, stopped;
    int signal; /* that the thread was about to receive */
};

/*
 * Reads what a thread is doing. The kernel may report for a moment that a thread runs which sleeps:
 * it is asked again, as the thread's call may be one that a stop would end.
 */
static bool read_state(pid_t pid, struct held_thread *thread)
{
    for (int i = 0; i < 3; i++) {
        thread->state = state_of(pid, thread->tid);
        if (read_call(pid, thread))
            return true;
        if (thread->state != 'S')
            break;
    }
    return false;
}

static bool has_ended(const struct held_thread *thread)
{
    return thread->state == '\0' || thread->state == 'Z' || thread->state == 'X';
}

/* Returns false with errno if the kernel refuses it; a thread that is ending is refused, too. */
static bool seize(pid_t pid, struct held_thread *thread, struct stop *stop)
{
    int error;
    if (read_state(pid, thread) && (held_is_ended_by_stop(thread->call) || thread->state == 'D'))
        return true;
    if (has_ended(thread))
        return true;
    stop->seized = ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL) == 0;
    if (stop->seized) {
        (void)ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
        return true;
    }
    error = errno;
    thread->state = state_of(pid, thread->tid);
    errno = error;
    return (error != EPERM && error != EACCES) || has_ended(thread);
}

/* Whether the thread has stopped or ended. */
static bool await(pid_t tid, struct stop *stop)
{
    int status;
    pid_t found = waitpid(tid, &status, __WALL | WNOHANG);
    if (found == 0)
        return false;
    stop->stopped = found == tid && WIFSTOPPED(status);
    if (!stop->stopped) { /* it has ended */
        stop->seized = false;
        return true;
    }
    if (status >> 16 != PTRACE_EVENT_STOP)
        stop->signal = WSTOPSIG(status);
    return true;
}

/* Waits until all have stopped, at most until `deadline`; returns how many have not. */
static size_t await_all(const struct held *held, struct stop *stops, int64_t deadline)
{
    size_t missing;
    for (;;) {
        missing = 0;
        for (size_t i = 0; i < held->count; i++) {
            if (stops[i].seized && !stops[i].stopped && !await(held->threads[i].tid, &stops[i]))
                missing++;
        }
        if (missing == 0 || now_ns() > deadline)
            return missing;
        (void)nanosleep(&(struct timespec){0, 20000}, NULL);
    }
}

/* Reads the registers of a stopped thread, and by the ABI the call that it is in. */
static bool read_registers(struct held_thread *thread)
{
#if defined(__x86_64__)
    struct user_regs_struct regs;
    struct iovec to = {&regs, sizeof regs};
    if (ptrace(PTRACE_GETREGSET, thread->tid, (void *)NT_PRSTATUS, &to) != 0)
        return false;
    thread->pc = regs.rip;
    thread->sp = regs.rsp;
    thread->fp = regs.rbp;
    thread->call = (long)regs.orig_rax;
    uint64_t arguments[] = {regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9};
    memcpy(thread->arguments, arguments, sizeof arguments);
    thread->in_call = thread->call >= 0;
    return true;
#elif defined(__aarch64__)
    struct user_regs_struct regs;
    struct iovec to = {&regs, sizeof regs};
    if (ptrace(PTRACE_GETREGSET, thread->tid, (void *)NT_PRSTATUS, &to) != 0)
        return false;
    thread->pc = regs.pc;
    thread->sp = regs.sp;
    thread->fp = regs.regs[29];
    /* The first argument's register has the result by now: the call is what /proc reported. */
    return true;
#else
    (void)thread;
    return false;
#endif
}

static void copy_thread(const struct held *held, struct held_thread *thread,
                        const struct stop *stop)
{
    struct held_thread before = *thread;
    if (stop->stopped ? !read_registers(thread) : !read_call(held->pid, thread))
        return;
    /* Without a stop: only what has not changed meanwhile was true at once. */
    if (!stop->stopped && (before.sp != thread->sp || before.call != thread->call))
        return;
    copy_stack(held, thread);
}

/* MARK: Threads */

static bool has_thread(const struct held *held, pid_t tid)
{
    for (size_t i = 0; i < held->count; i++) {
        if (held->threads[i].tid == tid)
            return true;
    }
    return false;
}

static void read_name(pid_t pid, pid_t tid, char *name, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, tid);
    if (!small_file_text(path, name, size))
        *name = '\0';
}

/* Adds the threads that are not known yet; returns whether there were any, -1: no memory. */
static int list_threads(struct held *held)
{
    char path[64];
    const struct dirent *entry;
    DIR *folder;
    int found = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task", held->pid);
    folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        struct held_thread thread = {.tid = (pid_t)atoi(entry->d_name)};
        if (thread.tid <= 0 || has_thread(held, thread.tid))
            continue;
        read_name(held->pid, thread.tid, thread.name, sizeof thread.name);
        if (!GROW(held->threads, held->capacity, held->count + 1)) {
            found = -1;
            break;
        }
        held->threads[held->count++] = thread;
        found = 1;
    }
    if (folder)
        (void)closedir(folder);
    return found;
}

/*
 * A thread that had just gone into a call which a stop ends with EINTR: on x86-64 the kernel can be
 * made to begin it again, as others, unless a signal is delivered (ERESTARTNOHAND).
 */
static void restart_call(pid_t tid)
{
#if defined(__x86_64__)
    struct user_regs_struct regs;
    struct iovec all = {&regs, sizeof regs};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &all) != 0 ||
        (int64_t)regs.rax != -EINTR || !held_is_ended_by_stop((long)regs.orig_rax))
        return;
    regs.rax = (uint64_t)-514;
    (void)ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &all);
#else
    (void)tid;
#endif
}

static void release(const struct held *held, const struct stop *stops)
{
    for (size_t i = 0; i < held->count; i++) {
        if (stops[i].stopped && !stops[i].signal)
            restart_call(held->threads[i].tid);
        if (stops[i].stopped)
            (void)ptrace(PTRACE_DETACH, held->threads[i].tid, NULL,
                         (void *)(intptr_t)stops[i].signal);
    }
}

struct take {
    struct held *held;
    struct stop *stops;
    size_t capacity;
    int error; /* of the first thread that could not be seized */
    bool no_memory;
};

static bool stop_listed(struct take *take, size_t from, int64_t deadline)
{
    struct held *held = take->held;
    if (!GROW(take->stops, take->capacity, held->count))
        return false;
    for (size_t i = from; i < held->count; i++)
        take->stops[i] = (struct stop){0};
    /* The first refusal is one for all: no other thread is disturbed. */
    for (size_t i = from; i < held->count && !take->error; i++) {
        if (!seize(held->pid, &held->threads[i], &take->stops[i]))
            take->error = errno;
    }
    held->unstopped = await_all(held, take->stops, deadline);
    return true;
}

static void take_in_thread(void *context)
{
    struct take *take = context;
    struct held *held = take->held;
    int64_t begin = now_ns(), deadline = begin + held->limit_ns;
    size_t from = 0;
    int found;
    /* Threads that running ones have made meanwhile. */
    while (!take->error && (found = list_threads(held)) > 0) {
        if (!stop_listed(take, from, deadline)) {
            found = -1;
            break;
        }
        from = held->count;
        if (now_ns() > deadline)
            break;
    }
    take->no_memory = !take->error && found < 0;
    for (size_t i = 0; i < from; i++)
        copy_thread(held, &held->threads[i], &take->stops[i]);
    held->count = from;
    release(held, take->stops);
    held->stopped_ns = now_ns() - begin;
}

/* MARK: The process */

static bool read_mappings(struct held *held)
{
    char path[64], *line = NULL;
    size_t room = 0;
    bool good = true;
    FILE *file;
    (void)snprintf(path, sizeof path, "/proc/%d/maps", held->pid);
    file = fopen(path, "re");
    while (good && file && getline(&line, &room, file) > 0) {
        struct held_mapping m = {0};
        char rights[5] = "";
        int at = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &m.start, &m.end, rights,
                   &at) != 3 ||
            at == 0)
            continue;
        m.is_shared = rights[3] == 's';
        line[strcspn(line, "\n")] = '\0';
        m.path = strdup(line + at);
        good = m.path && GROW(held->mappings, held->mapping_capacity, held->mapping_count + 1);
        if (good)
            held->mappings[held->mapping_count++] = m;
        else
            free(m.path);
    }
    free(line);
    if (file)
        (void)fclose(file);
    return good;
}

/* The number behind a word in /proc/PID/status; -1: it is not there. */
static long status_number(pid_t pid, const char *word, bool *several)
{
    char path[64], text[4096];
    const char *at;
    long first, second;
    (void)snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (!small_file_text(path, text, sizeof text) || !(at = strstr(text, word)))
        return -1;
    int n = sscanf(at + strlen(word), "%ld%*[\t]%ld", &first, &second);
    if (several)
        *several = n == 2;
    return n >= 1 ? first : -1;
}

bool held_refuse(pid_t pid, trail_error *err)
{
    long tracer = status_number(pid, "\nTracerPid:", NULL), scope = 0;
    char name[64] = "";
    if (tracer > 0) {
        read_name((pid_t)tracer, (pid_t)tracer, name, sizeof name);
        error_set(err, TRAIL_IO,
                  "process %d is being traced by process %ld (%s), and a process can have one "
                  "tracer only; end that first",
                  pid, tracer, name);
        return false;
    }
    (void)small_file_number("/proc/sys/kernel/yama/ptrace_scope", &scope);
    if (scope > 0)
        error_set(err, TRAIL_IO,
                  "process %d may not be looked at: /proc/sys/kernel/yama/ptrace_scope is %ld; run "
                  "trail as root%s",
                  pid, scope, scope == 1 ? ", or 'sysctl kernel.yama.ptrace_scope=0'" : "");
    else
        error_set(
            err, TRAIL_IO,
            "process %d may not be looked at: it belongs to another user, or has more rights; "
            "run trail as root",
            pid);
    return false;
}

static bool take_now(struct held *held, trail_error *err)
{
    struct take take = {.held = held};
    int failed = tracer_run(take_in_thread, &take);
    if (failed) {
        error_set(err, TRAIL_NO_MEMORY, "no thread can be started: %s", strerror(failed));
        return false;
    }
    free(take.stops);
    if (take.no_memory)
        error_set(err, TRAIL_NO_MEMORY, "out of memory");
    return take.error ? held_refuse(held->pid, err) : !take.no_memory;
}

bool held_take(struct held *held, pid_t pid, int64_t limit_ns, trail_error *err)
{
    *held = (struct held){.pid = pid, .limit_ns = limit_ns};
    read_name(pid, pid, held->name, sizeof held->name);
    if (!*held->name) {
        error_set(err, TRAIL_IO, "there is no process %d", pid);
        return false;
    }
    (void)status_number(pid, "\nNSpid:", &held->is_nested);
    if (!read_mappings(held)) {
        error_set(err, TRAIL_NO_MEMORY, "out of memory");
        return false;
    }
    return take_now(held, err);
}

void held_free(struct held *held)
{
    for (size_t i = 0; i < held->count; i++)
        free(held->threads[i].stack);
    for (size_t i = 0; i < held->mapping_count; i++)
        free(held->mappings[i].path);
    free(held->threads);
    free(held->mappings);
    *held = (struct held){0};
}
