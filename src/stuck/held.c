/* Stopping and copying: see held.h. */
#include "stuck/held.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/idmap.h"
#include "base/present_memory.h"
#include "base/search.h"
#include "base/small_file.h"
#include "collect/process.h"
#include "collect/socket_limit.h"
#include "stuck/container.h"
#include "stuck/tracer.h"

/* MARK: What /proc says */

/* Returns the character after the name, which may contain anything (proc(5), stat). */
static char state_of(pid_t pid, pid_t tid)
{
    char text[512];
    const char *end;
    if (!small_file_text(text, sizeof text, "/proc/%d/task/%d/stat", pid, tid) ||
        !(end = strrchr(text, ')')) || end[1] != ' ')
        return '\0';
    return end[2];
}

/*
 * Reads the call in which a thread sleeps: "NUMBER ARG... SP PC"; "-1 SP PC" outside of one; or
 * "running". False: it runs, or this is not known.
 */
static bool read_call(pid_t pid, struct held_thread *thread)
{
    char text[256];
    uint64_t *a = thread->arguments;
    thread->in_call = false;
    if (!small_file_text(text, sizeof text, "/proc/%d/task/%d/syscall", pid, thread->tid))
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

/* A stop ends these with EINTR, or with the amount written so far. */
static bool is_always_ended(long call)
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
#ifdef SYS_sendfile
        SYS_sendfile,
#endif
        SYS_write,          SYS_writev,          SYS_sendto,     SYS_sendmsg,
        SYS_sendmmsg,       SYS_splice,          SYS_vmsplice,
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (call == calls[i])
            return true;
    }
    return false;
}

/* Calls on sockets, which a stop ends if they have a time limit. */
static bool is_of_socket(long call, bool *is_write)
{
    switch (call) {
    case SYS_connect:
        *is_write = true;
        return true;
#ifdef SYS_accept
    case SYS_accept:
#endif
    case SYS_accept4:
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
        *is_write = false;
        return true;
    default:
        return false;
    }
}

/* Whether a call, if ended by a stop, returns only a part of what it waits for. */
static bool waits_for_all(const struct held_thread *thread)
{
    return (thread->call == SYS_recvfrom && thread->arguments[3] & MSG_WAITALL) ||
           (thread->call == SYS_recvmsg && thread->arguments[2] & MSG_WAITALL);
}

/* After a stop, the kernel continues these up to their time limit by restart_syscall(2). */
static bool is_continued(const struct held_thread *thread)
{
    switch (thread->call) {
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_nanosleep:
        return true;
    case SYS_clock_nanosleep:
        return !(thread->arguments[1] & TIMER_ABSTIME);
    case SYS_futex:
        return thread->arguments[3] != 0;
    default:
        return false;
    }
}

bool held_is_filtered(pid_t tid)
{
    return process_status_number(tid, "\nSeccomp:", NULL) > 0;
}

bool held_is_ended_by_stop(pid_t pid, const struct held_thread *thread)
{
    bool is_write;
    if (thread->is_filtered && is_continued(thread))
        return true;
    if (is_always_ended(thread->call) || waits_for_all(thread))
        return true;
    return is_of_socket(thread->call, &is_write) &&
           socket_limit(pid, (int)thread->arguments[0], is_write) == SOCKET_LIMITED;
}

/* Whether a stop ends some calls with this number. */
static bool may_be_ended(long call)
{
    bool is_write;
    return is_always_ended(call) || is_of_socket(call, &is_write);
}

bool held_was_ended_by_stop(const struct held_thread *thread, long call, int64_t result)
{
    return (result == -EINTR && may_be_ended(call)) ||
           (result == -ERESTART_RESTARTBLOCK && thread->is_filtered);
}

/* MARK: Memory */

static size_t read_memory(pid_t pid, uint64_t at, void *to, size_t size)
{
    ssize_t n = memory_of_other(pid, at, to, present_memory(pid, at, size));
    return n > 0 ? (size_t)n : 0;
}

bool held_copy(const struct held_memory *memory, uint64_t at, void *to, size_t size)
{
    if (at < memory->at || size > memory->size || at - memory->at > memory->size - size)
        return false;
    memcpy(to, memory->bytes + (at - memory->at), size);
    return true;
}

/* The kernel lists mappings by address. */
const struct mapping *held_mapping_of(const struct held *held, uint64_t address)
{
    size_t at = SEARCH(i, 0, held->mapping_count, held->mappings[i].end <= address);
    const struct mapping *m = &held->mappings[at];
    return at < held->mapping_count && address >= m->start ? m : NULL;
}

bool held_is_musl(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strncmp(name, "ld-musl-", 8) == 0 || strncmp(name, "libc.musl-", 10) == 0 ||
           strcmp(name, "libc.so") == 0;
}

/* Returns which argument of the call is the address of its object. */
static int object_argument(const struct held_thread *thread)
{
    switch (thread->call) {
    case SYS_connect:
        return 1;
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6: /* descriptors to read from, or else to write to */
        return thread->arguments[1] ? 1 : 2;
    default:
        return 0;
    }
}

/* Copies memory around a futex, or from the beginning of polled descriptors and addresses. */
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
    const struct mapping *stack = held_mapping_of(held, thread->sp);
    /* The thread was created after the mappings were read. */
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

/* A thread that is stopped together with others. */
struct stop {
    pid_t pid;
    struct held_thread *thread;
    bool seized, stopped;
    int signal; /* that the thread was about to receive */
};

/*
 * Reads what a thread is doing. The kernel may briefly report a sleeping thread as running: it is
 * asked again, because the thread's call may be one that a stop would end.
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

/* Returns false with errno if the kernel refuses; it also refuses for a thread that is ending. */
static bool seize(struct stop *stop)
{
    struct held_thread *thread = stop->thread;
    if (read_state(stop->pid, thread) &&
        (held_is_ended_by_stop(stop->pid, thread) || thread->state == 'D'))
        return true;
    if (has_ended(thread))
        return true;
    stop->seized = ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL) == 0;
    if (stop->seized) {
        (void)ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
        return true;
    }
    int error = errno;
    thread->state = state_of(stop->pid, thread->tid);
    errno = error;
    return (error != EPERM && error != EACCES) || has_ended(thread);
}

/* Whether the thread has stopped or ended. */
static bool await(struct stop *stop)
{
    int status;
    pid_t tid = stop->thread->tid, found = waitpid(tid, &status, __WALL | WNOHANG);
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

/* Waits until all have stopped, at most until `deadline`. */
static void await_all(struct stop *stops, size_t count, int64_t deadline)
{
    size_t missing;
    for (;;) {
        missing = 0;
        for (size_t i = 0; i < count; i++) {
            if (stops[i].seized && !stops[i].stopped && !await(&stops[i]))
                missing++;
        }
        if (missing == 0 || now_ns() > deadline)
            return;
        (void)nanosleep(&(struct timespec){0, 20000}, NULL);
    }
}

/* Returns 0, or the error of the first refusal, which applies to all: no other thread is
 * disturbed. */
static int stop_all(struct stop *stops, size_t count, int64_t deadline)
{
    for (size_t i = 0; i < count; i++) {
        if (!seize(&stops[i]))
            return errno;
    }
    await_all(stops, count, deadline);
    return 0;
}

#if defined(__x86_64__)
/*
 * Whether a stop has ended the call of a thread that waits in it: its result makes the kernel
 * restart the call (ERESTARTSYS and the like), or is one that restart_call() replaces. Any other
 * result is the call's own.
 */
static bool is_interrupted_wait(long call, int64_t result)
{
    return (result <= -ERESTARTSYS && result >= -ERESTARTNOHAND) ||
           result == -ERESTART_RESTARTBLOCK || (result == -EINTR && may_be_ended(call));
}
#endif

/* Reads the registers of a stopped thread, and from them, by the ABI, its call. */
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
    if (thread->state == 'S' || thread->state == 'R')
        thread->state =
            thread->in_call && is_interrupted_wait(thread->call, (int64_t)regs.rax) ? 'S' : 'R';
    return true;
#elif defined(__aarch64__)
    struct user_regs_struct regs;
    struct iovec to = {&regs, sizeof regs};
    if (ptrace(PTRACE_GETREGSET, thread->tid, (void *)NT_PRSTATUS, &to) != 0)
        return false;
    thread->pc = regs.pc;
    thread->sp = regs.sp;
    thread->fp = regs.regs[29];
    /* The first argument's register already has the result: the call is what /proc reported. */
    return true;
#else
    (void)thread;
    return false;
#endif
}

/* Reads where a thread is. False: it runs, or it moved during a reading without a stop. */
static bool read_place(const struct stop *stop)
{
    struct held_thread *thread = stop->thread;
    struct held_thread before = *thread;
    if (stop->stopped)
        return read_registers(thread);
    /* Without a stop, only what has not changed during the reading was true at one instant. */
    if (read_call(stop->pid, thread))
        return before.sp == thread->sp && before.call == thread->call;
    thread->state = state_of(stop->pid, thread->tid);
    return false;
}

/* Whether the registers of a stopped thread show that it still waits in its call. */
#if defined(__x86_64__)
enum { ARE_REGISTERS_EXACT = true };
#else
enum { ARE_REGISTERS_EXACT = false };
#endif

/* MARK: Threads */

static void read_name(pid_t pid, pid_t tid, char *name, size_t size)
{
    if (!small_file_text(name, size, "/proc/%d/task/%d/comm", pid, tid))
        *name = '\0';
}

struct take {
    struct held *held;
    struct idmap known; /* TIDs */
    size_t most;        /* maximum number of threads examined: a process may create others without
                         * end */
    size_t from;        /* the group's first thread */
    int error;          /* of the first thread that could not be seized */
    bool no_memory;
};

/* Adds a thread unless it is known; false: out of memory. */
static bool add_thread(struct take *take, pid_t tid)
{
    struct held *held = take->held;
    struct held_thread thread = {.tid = tid};
    if (idmap_find(&take->known, (uint64_t)tid))
        return true;
    if (!idmap_put(&take->known, (uint64_t)tid, held))
        return false;
    if (!GROW(held->threads, held->capacity, held->count + 1))
        return false;
    read_name(held->pid, tid, thread.name, sizeof thread.name);
    thread.is_filtered = held_is_filtered(tid) && !container_lets_restart(tid);
    held->threads[held->count++] = thread;
    return true;
}

/* Adds the threads that are not known yet; returns whether there were any. */
static bool list_threads(struct take *take)
{
    size_t before = take->held->count;
    SMALL_FILE_NUMBERS(task, "/proc/%d/task", take->held->pid) {
        if (take->no_memory || take->held->count >= take->most)
            break;
        take->no_memory = !add_thread(take, task.at);
    }
    return !take->no_memory && take->held->count > before;
}

/* Handles a thread that had just entered a call which a stop ends: possible on x86-64. */
static void restart_call(const struct held_thread *thread)
{
#if defined(__x86_64__)
    struct user_regs_struct regs;
    struct iovec all = {&regs, sizeof regs};
    if (ptrace(PTRACE_GETREGSET, thread->tid, (void *)NT_PRSTATUS, &all) != 0 ||
        !held_was_ended_by_stop(thread, (long)regs.orig_rax, (int64_t)regs.rax))
        return;
    regs.rax = (uint64_t)-ERESTARTNOHAND;
    (void)ptrace(PTRACE_SETREGSET, thread->tid, (void *)NT_PRSTATUS, &all);
#else
    (void)thread;
#endif
}

static void release(const struct stop *stops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pid_t tid = stops[i].thread->tid;
        if (stops[i].stopped && !stops[i].signal)
            restart_call(stops[i].thread);
        if (stops[i].stopped)
            (void)ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)stops[i].signal);
    }
}

/* MARK: Groups */

/* Copying may exceed the time limit by this fraction of it. */
#define COPY_PART 4

/* The array of threads moves as it grows. */
static void find_threads(const struct take *take, struct stop *stops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        stops[i].thread = &take->held->threads[take->from + i];
}

/* Adds listed threads to a group of `count`, as many as fit; returns its size. */
static size_t fill_group(const struct take *take, struct stop *stops, size_t count)
{
    size_t listed = take->held->count - take->from;
    size_t size = listed < HELD_GROUP ? listed : HELD_GROUP;
    for (size_t i = count; i < size; i++)
        stops[i] = (struct stop){.pid = take->held->pid};
    find_threads(take, stops, size);
    return size;
}

/*
 * Stops a group and returns its size. If it is the only one, it includes threads that running ones
 * have created in the meantime, so that all are seen at one instant.
 */
static size_t stop_group(struct take *take, struct stop *stops, int64_t deadline)
{
    size_t count = 0, before;
    bool is_only = take->from == 0 && take->held->count < HELD_GROUP;
    do {
        before = count;
        count = fill_group(take, stops, before);
        take->error = stop_all(stops + before, count - before, deadline);
    } while (is_only && !take->error && count < HELD_GROUP && list_threads(take) &&
             now_ns() < deadline);
    find_threads(take, stops, count);
    return count;
}

/* Copies the first threads, at least one, as many as time permits; returns their number. */
static size_t copy_group(const struct take *take, const struct stop *stops, size_t count,
                         int64_t deadline)
{
    size_t i = 0;
    while (i < count && (i == 0 || now_ns() < deadline)) {
        if (read_place(&stops[i]))
            copy_stack(take->held, stops[i].thread);
        if (stops[i].stopped && ARE_REGISTERS_EXACT)
            stops[i].thread->group = take->held->groups + 1;
        take->held->unstopped += stops[i].seized && !stops[i].stopped;
        i++;
    }
    return i;
}

/*
 * Each group has its own tracing thread; when that ends, the kernel releases the threads that
 * stopped too late to be released here.
 */
static void take_group(void *context)
{
    struct take *take = context;
    struct held *held = take->held;
    struct stop stops[HELD_GROUP];
    int64_t begin = now_ns(), deadline = begin + held->limit_ns, length;
    size_t count = stop_group(take, stops, deadline);
    if (!take->error)
        take->from += copy_group(take, stops, count, now_ns() + held->limit_ns / COPY_PART);
    release(stops, count);
    length = now_ns() - begin;
    if (length > held->stopped_ns)
        held->stopped_ns = length;
    held->groups++;
}

/* Whether there are threads for another group. After several groups, new threads may exist. */
static bool is_another(struct take *take)
{
    return take->from < take->held->count || (take->held->groups > 1 && list_threads(take));
}

/* Returns 0, or the error of pthread_create. */
static int take_groups(struct take *take)
{
    int failed = 0;
    take->most = SIZE_MAX;
    (void)list_threads(take);
    take->most = 2 * take->held->count + HELD_GROUP;
    while (!failed && !take->error && !take->no_memory && is_another(take))
        failed = tracer_run(take_group, take);
    take->held->count = take->from;
    return failed;
}

/* MARK: Looking again */

struct once_more {
    const struct held *held;
    struct held_thread *thread;
};

static void take_once_more(void *context)
{
    const struct once_more *once_more = context;
    const struct held *held = once_more->held;
    struct held_thread *thread = once_more->thread;
    struct stop stop = {.pid = held->pid, .thread = thread};
    if (stop_all(&stop, 1, now_ns() + held->limit_ns) == 0 && read_place(&stop))
        copy_stack(held, thread);
    thread->group = stop.stopped;
    release(&stop, 1);
}

bool held_take_again(const struct held *held, const struct held_thread *before,
                     struct held_thread *now)
{
    *now = (struct held_thread){.tid = before->tid, .is_filtered = before->is_filtered};
    return tracer_run(take_once_more, &(struct once_more){held, now}) == 0 && now->is_copied;
}

static bool is_as_before(const struct held_thread *now, const struct held_thread *before)
{
    return now->in_call && before->in_call && now->call == before->call && now->sp == before->sp &&
           memcmp(now->arguments, before->arguments, sizeof now->arguments) == 0;
}

/* Returns how often the thread has gone to sleep; -1: not known. */
static long sleeps_of(pid_t tid)
{
    return process_status_number(tid, "\nvoluntary_ctxt_switches:", NULL);
}

/*
 * Whether the thread sleeps in a call. While a thread that was woken is passed to another processor,
 * the kernel still shows its call, but its state is that of one that runs.
 */
static bool read_sleep(pid_t pid, struct held_thread *thread)
{
    return read_call(pid, thread) && state_of(pid, thread->tid) != 'R';
}

bool held_sleeps(struct held_sleep *sleep, int64_t deadline)
{
    struct held_thread now = {.tid = sleep->thread->tid};
    while (!read_sleep(sleep->pid, &now)) {
        if (now_ns() > deadline)
            return false;
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    sleep->count = sleeps_of(now.tid);
    return sleep->count >= 0 && is_as_before(&now, sleep->thread);
}

bool held_sleeps_on(const struct held_sleep *sleep)
{
    struct held_thread now = {.tid = sleep->thread->tid};
    return read_sleep(sleep->pid, &now) && is_as_before(&now, sleep->thread) &&
           sleeps_of(now.tid) == sleep->count;
}

void held_object_now(pid_t pid, const struct held_thread *thread, struct held_memory *object)
{
    struct held_thread now = *thread;
    now.object = (struct held_memory){0};
    copy_object(pid, &now);
    *object = now.object;
}

bool held_has_same_stack(pid_t pid, const struct held_thread *thread, uint64_t end)
{
    size_t size = end > thread->sp ? (size_t)(end - thread->sp) : 0;
    uint8_t *now = size > 0 && size <= thread->stack_size ? malloc(size) : NULL;
    bool same = now && read_memory(pid, thread->sp, now, size) == size &&
                memcmp(now, thread->stack, size) == 0;
    free(now);
    return same;
}

/* MARK: The process */

static bool read_mappings(struct held *held)
{
    SMALL_FILE_LINES(lines, "/proc/%d/maps", held->pid) {
        struct mapping m;
        if (!mapping_read(lines.text, &m))
            continue;
        if (!GROW(held->mappings, held->mapping_capacity, held->mapping_count + 1))
            return false;
        m.path = strdup(m.path);
        if (!m.path)
            return false;
        held->mappings[held->mapping_count++] = m;
    }
    return true;
}

bool held_refuse(pid_t pid, trail_error *err)
{
    long tracer = process_status_number(pid, "\nTracerPid:", NULL), scope = 0;
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
                  "cannot examine process %d: /proc/sys/kernel/yama/ptrace_scope is %ld; run "
                  "trail as root%s",
                  pid, scope, scope == 1 ? ", or 'sysctl kernel.yama.ptrace_scope=0'" : "");
    else
        error_set(err, TRAIL_IO,
                  "cannot examine process %d: it belongs to another user, or has more rights; "
                  "run trail as root",
                  pid);
    return false;
}

static bool take_now(struct held *held, trail_error *err)
{
    struct take take = {.held = held};
    int failed = take_groups(&take);
    idmap_free(&take.known);
    if (failed) {
        error_set(err, TRAIL_NO_MEMORY, "no thread can be started: %s", strerror(failed));
        return false;
    }
    if (take.no_memory)
        error_no_memory(err);
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
    (void)process_status_number(pid, "\nNSpid:", &held->is_nested);
    held->has_alarm = process_catches_alarm(pid);
    if (!read_mappings(held)) {
        error_no_memory(err);
        return false;
    }
    return take_now(held, err);
}

void held_free(struct held *held)
{
    for (size_t i = 0; i < held->count; i++)
        free(held->threads[i].stack);
    for (size_t i = 0; i < held->mapping_count; i++)
        free((char *)(uintptr_t)held->mappings[i].path);
    free(held->threads);
    free(held->mappings);
    *held = (struct held){0};
}
