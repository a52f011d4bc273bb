/* Calls a function in a thread of another process: see remote.h. */
#include "attach/remote.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/present_memory.h"

#if defined(__x86_64__)

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#include "stuck/held.h"
#include "stuck/tracer.h"

/* The time limit for a thread to stop. */
#define STOP_NS INT64_C(100000000)

/* The red zone: functions may use memory below the stack pointer (System V ABI, x86-64, 3.2.2). */
#define RED_ZONE 128

/* The state of the vector registers in ptrace and in signal frames (<asm/sigcontext.h>). */
#define XSTATE_MOST (16u << 10)
#define XSTATE_FEATURE                                                                             \
    464 /* the mask of features in ptrace, `struct _fpx_sw_bytes` in signal frames */
#define XSTATE_MAGIC1 0x46505853u
#define XSTATE_MAGIC2 0x46505845u
#define UC_FP_XSTATE  1

struct xstate_words {
    uint32_t magic1, extended_size;
    uint64_t features;
    uint32_t size, unused[7];
};

/* The kernel's frame; the C library's struct ucontext_t has a longer set of signals. */
struct signal_frame {
    uint64_t return_address;
    unsigned long flags;
    void *link;
    stack_t stack;
    mcontext_t context;
    uint64_t mask;
};

struct remote {
    pid_t pid, tid;
    struct user_regs_struct before;
    uint64_t mask;
    uint8_t xstate[XSTATE_MOST];
    size_t xstate_size;
    int64_t deadline_ns; /* CLOCK_MONOTONIC */
    uint64_t data_at, frame_at;
};

/* MARK: Stops */

/* Waits until the thread stops or ends; false if it has not by the deadline. */
static bool await(const struct remote *r, int *status)
{
    int64_t begin = now_ns(), now;
    while (waitpid(r->tid, status, __WALL | WNOHANG) == 0) {
        now = now_ns();
        if (now > r->deadline_ns)
            return false;
        /* Most stops come within microseconds. */
        if (now - begin < 200000)
            (void)sched_yield();
        else
            (void)nanosleep(&(struct timespec){0, 50000}, NULL);
    }
    return true;
}

static bool is_interrupt(int status)
{
    return WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP;
}

static bool is_syscall(int status)
{
    return WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
}

/*
 * Resumes the thread after a stop and delivers the signal that caused it. A thread that a signal is
 * to stop remains stopped.
 */
static void go_on(const struct remote *r, int status, bool to_syscall)
{
    bool event = status >> 16 != 0, group = event && WSTOPSIG(status) != SIGTRAP;
    int signal = event || is_syscall(status) ? 0 : WSTOPSIG(status);
    if (group)
        (void)ptrace(PTRACE_LISTEN, r->tid, NULL, NULL);
    else
        (void)ptrace(to_syscall ? PTRACE_SYSCALL : PTRACE_CONT, r->tid, NULL,
                     (void *)(intptr_t)signal);
}

/* Waits for the stop by PTRACE_INTERRUPT, between two instructions or in a system call. */
static bool await_interrupt(const struct remote *r)
{
    int status;
    while (await(r, &status)) {
        if (is_interrupt(status))
            return true;
        if (!WIFSTOPPED(status))
            return false;
        go_on(r, status, false);
    }
    return false;
}

/* MARK: Registers and memory */

static bool get_registers(const struct remote *r, struct user_regs_struct *regs)
{
    struct iovec to = {regs, sizeof *regs};
    return ptrace(PTRACE_GETREGSET, r->tid, (void *)NT_PRSTATUS, &to) == 0;
}

static bool set_registers(const struct remote *r, struct user_regs_struct *regs)
{
    struct iovec from = {regs, sizeof *regs};
    return ptrace(PTRACE_SETREGSET, r->tid, (void *)NT_PRSTATUS, &from) == 0;
}

static bool read_state(struct remote *r)
{
    struct iovec xstate = {r->xstate, sizeof r->xstate};
    if (!get_registers(r, &r->before) ||
        ptrace(PTRACE_GETREGSET, r->tid, (void *)NT_X86_XSTATE, &xstate) != 0 ||
        ptrace(PTRACE_GETSIGMASK, r->tid, (void *)sizeof r->mask, &r->mask) != 0)
        return false;
    r->xstate_size = xstate.iov_len;
    return r->xstate_size > XSTATE_FEATURE + sizeof(struct xstate_words) &&
           r->xstate_size < sizeof r->xstate;
}

static bool copy_there(const struct remote *r, uint64_t at, const void *from, size_t size)
{
    struct iovec here = {(void *)(uintptr_t)from, size}, there = {(void *)(uintptr_t)at, size};
    return process_vm_writev(r->pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static bool copy_back(const struct remote *r, uint64_t at, void *to, size_t size)
{
    return memory_of_other(r->pid, at, to, size) == (ssize_t)size;
}

/* MARK: The frame */

/* Fills in the registers with which the thread continues if the kernel restores them. */
static void fill_registers(mcontext_t *context, const struct user_regs_struct *regs)
{
    greg_t *g = context->gregs;
    int64_t result = (int64_t)regs->rax;
    g[REG_R8] = (greg_t)regs->r8;
    g[REG_R9] = (greg_t)regs->r9;
    g[REG_R10] = (greg_t)regs->r10;
    g[REG_R11] = (greg_t)regs->r11;
    g[REG_R12] = (greg_t)regs->r12;
    g[REG_R13] = (greg_t)regs->r13;
    g[REG_R14] = (greg_t)regs->r14;
    g[REG_R15] = (greg_t)regs->r15;
    g[REG_RDI] = (greg_t)regs->rdi;
    g[REG_RSI] = (greg_t)regs->rsi;
    g[REG_RBP] = (greg_t)regs->rbp;
    g[REG_RBX] = (greg_t)regs->rbx;
    g[REG_RDX] = (greg_t)regs->rdx;
    g[REG_RAX] = (greg_t)regs->rax;
    g[REG_RCX] = (greg_t)regs->rcx;
    g[REG_RSP] = (greg_t)regs->rsp;
    g[REG_RIP] = (greg_t)regs->rip;
    g[REG_EFL] = (greg_t)regs->eflags;
    /* cs, gs, fs, ss: 16 bits each. */
    g[REG_CSGSFS] = (greg_t)(regs->cs | regs->ss << 48);
    /* After a signal handler the kernel restarts these calls (SA_RESTART) or makes them fail. */
    if (result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND) {
        g[REG_RAX] = (greg_t)regs->orig_rax;
        g[REG_RIP] -= 2; /* the instruction syscall */
    } else if (result == -ERESTART_RESTARTBLOCK) {
        g[REG_RAX] = -EINTR;
    }
}

/*
 * Converts the vector registers' state to the form of a signal frame; returns its size, including
 * the word after it.
 */
static size_t fill_xstate(const struct remote *r, uint8_t *to)
{
    struct xstate_words words = {.magic1 = XSTATE_MAGIC1,
                                 .extended_size = (uint32_t)(r->xstate_size + sizeof(uint32_t)),
                                 .size = (uint32_t)r->xstate_size};
    uint32_t end = XSTATE_MAGIC2;
    memcpy(to, r->xstate, r->xstate_size);
    memcpy(&words.features, to + XSTATE_FEATURE, sizeof words.features);
    memcpy(to + XSTATE_FEATURE, &words, sizeof words);
    memcpy(to + r->xstate_size, &end, sizeof end);
    return r->xstate_size + sizeof end;
}

/* Writes the data, the vector registers and the frame below the thread's stack pointer. */
static bool write_frame(struct remote *r, const struct remote_code *code,
                        const struct remote_call *call)
{
    uint8_t xstate[XSTATE_MOST + 8];
    size_t size = fill_xstate(r, xstate);
    struct signal_frame frame = {.return_address = code->sigreturn.address,
                                 .flags = UC_FP_XSTATE,
                                 /* Invalid, so that the thread keeps its signal stack. */
                                 .stack = {.ss_flags = 0x55},
                                 .mask = r->mask};
    r->data_at = (r->before.rsp - RED_ZONE - call->size) & ~UINT64_C(63);
    uint64_t xstate_at = (r->data_at - size) & ~UINT64_C(63);
    /* At a function's first instruction, the return address is 8 above a multiple of 16. */
    r->frame_at = ((xstate_at - sizeof frame) & ~UINT64_C(15)) - 8;
    fill_registers(&frame.context, &r->before);
    frame.context.fpregs = (fpregset_t)(uintptr_t)xstate_at;
    return copy_there(r, r->data_at, call->data, call->size) &&
           copy_there(r, xstate_at, xstate, size) &&
           copy_there(r, r->frame_at, &frame, sizeof frame);
}

/*
 * The function returns to the instructions that store its result, if any, and then to the frame's
 * address.
 */
static bool begin_call(struct remote *r, const struct remote_code *code,
                       const struct remote_call *call)
{
    struct user_regs_struct regs = r->before;
    uint64_t to[3] = {code->store.address, 0, code->sigreturn.address};
    uint64_t arguments[3];
    for (int i = 0; i < 3; i++)
        arguments[i] = call->arguments[i] + (call->is_offset[i] ? r->data_at : 0);
    regs.rsp = r->frame_at;
    if (code->store.address) {
        /* Three more words; they preserve the alignment, and the frame's address is unchanged. */
        regs.rsp -= 16;
        if (!copy_there(r, regs.rsp, to, sizeof to))
            return false;
        regs.rbx = r->data_at;
    }
    regs.rip = call->function.address;
    regs.rdi = arguments[0];
    regs.rsi = arguments[1];
    regs.rdx = arguments[2];
    regs.rax = 0;
    regs.orig_rax = UINT64_MAX;      /* do not restart a system call */
    regs.eflags &= ~UINT64_C(0x400); /* the direction flag */
    return set_registers(r, &regs);
}

/* MARK: The call */

/* Blocks all signals except those that the function itself could cause. */
static uint64_t quiet_mask(void)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
    uint64_t mask = UINT64_MAX;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        mask &= ~(UINT64_C(1) << (own[i] - 1));
    return mask;
}

/* Whether the thread is about to let the kernel restore the frame. */
static bool is_at_end(const struct remote *r)
{
    struct user_regs_struct regs;
    return get_registers(r, &regs) && regs.orig_rax == SYS_rt_sigreturn &&
           (int64_t)regs.rax == -ENOSYS && regs.rsp == r->frame_at + sizeof(uint64_t);
}

static bool run_to_end(const struct remote *r, trail_error *err)
{
    int status = SIGTRAP << 8 | 0x7f | PTRACE_EVENT_STOP << 16;
    do {
        go_on(r, status, true);
        if (!await(r, &status)) {
            error_set(err, TRAIL_IO,
                      "a call in process %d has not returned within 10 s; the process continues by "
                      "itself",
                      r->pid);
            return false;
        }
        if (!WIFSTOPPED(status)) {
            error_set(err, TRAIL_IO, "thread %d of process %d has ended", r->tid, r->pid);
            return false;
        }
    } while (!is_syscall(status) || !is_at_end(r));
    return true;
}

/* A restarted call with a time limit is a different system call. */
static bool is_place(const struct user_regs_struct *regs, const struct remote_place *place)
{
    return regs->rsp == place->sp &&
           ((long)regs->orig_rax == place->call || regs->orig_rax == SYS_restart_syscall);
}

/* The process may have executed another program since it was examined. */
static bool has_code(const struct remote *r, const struct image_code *code)
{
    uint8_t bytes[sizeof code->bytes];
    return code->address == 0 || (copy_back(r, code->address, bytes, sizeof bytes) &&
                                  memcmp(bytes, code->bytes, sizeof bytes) == 0);
}

/* A stop ends some calls although the kernel could restart them. */
static void allow_restart(pid_t tid, struct user_regs_struct *regs)
{
    const struct held_thread thread = {.tid = tid, .is_filtered = held_is_filtered(tid)};
    if (held_was_ended_by_stop(&thread, (long)regs->orig_rax, (int64_t)regs->rax))
        regs->rax = (uint64_t)-ERESTARTNOHAND;
}

/* Lets a thread continue in the call in which it was stopped. */
static void restart_call(const struct remote *r)
{
    struct user_regs_struct regs;
    if (!get_registers(r, &regs))
        return;
    allow_restart(r->tid, &regs);
    (void)set_registers(r, &regs);
}

/*
 * The thread is about to return from the frame. Instead it skips that system call, stops, and gets
 * the registers of its first stop: only then does the kernel restart the call it was in. If this
 * process ends before that, the thread executes the frame's end again.
 */
static bool restore(struct remote *r, uint64_t sigreturn)
{
    struct user_regs_struct regs = r->before;
    struct iovec xstate = {r->xstate, r->xstate_size};
    regs.rip = sigreturn;
    regs.rsp = r->frame_at + sizeof(uint64_t);
    regs.orig_rax = UINT64_MAX;
    if (!set_registers(r, &regs) || ptrace(PTRACE_INTERRUPT, r->tid, NULL, NULL) != 0 ||
        ptrace(PTRACE_CONT, r->tid, NULL, NULL) != 0 || !await_interrupt(r))
        return false;
    allow_restart(r->tid, &r->before);
    return ptrace(PTRACE_SETREGSET, r->tid, (void *)NT_X86_XSTATE, &xstate) == 0 &&
           ptrace(PTRACE_SETSIGMASK, r->tid, (void *)sizeof r->mask, &r->mask) == 0 &&
           set_registers(r, &r->before);
}

static bool do_call(struct remote *r, const struct remote_code *code, struct remote_call *call,
                    trail_error *err)
{
    uint64_t quiet = quiet_mask();
    if (!write_frame(r, code, call) || !begin_call(r, code, call)) {
        error_set(err, TRAIL_IO, "cannot write the stack of thread %d: %s", r->tid,
                  strerror(errno));
        return false;
    }
    (void)ptrace(PTRACE_SETSIGMASK, r->tid, (void *)sizeof quiet, &quiet);
    if (!run_to_end(r, err))
        return false;
    (void)copy_back(r, r->data_at, call->data, call->size);
    if (code->store.address && call->size >= sizeof call->result)
        memcpy(&call->result, call->data, sizeof call->result);
    (void)restore(r, code->sigreturn.address);
    return true;
}

/* The arguments and the result of remote_do. */
struct doing {
    struct remote *remote;
    const struct remote_place *place;
    const struct remote_code *code;
    struct remote_call *call;
    trail_error *err;
    enum remote_outcome outcome;
};

static bool has_all_code(const struct remote *r, const struct doing *doing)
{
    if (has_code(r, &doing->call->function) && has_code(r, &doing->code->sigreturn) &&
        has_code(r, &doing->code->store))
        return true;
    error_set(doing->err, TRAIL_IO,
              "process %d has executed another program in the meantime: try again", r->pid);
    return false;
}

/* A thread that has not stopped in time is detached when the calling thread ends. */
static void do_in_thread(void *context)
{
    struct doing *doing = context;
    struct remote *r = doing->remote;
    r->deadline_ns = now_ns() + STOP_NS;
    if (ptrace(PTRACE_SEIZE, r->tid, NULL, (void *)PTRACE_O_TRACESYSGOOD) != 0)
        return;
    if (ptrace(PTRACE_INTERRUPT, r->tid, NULL, NULL) == 0 && await_interrupt(r)) {
        bool is_there =
            read_state(r) && is_place(&r->before, doing->place) && !held_is_filtered(r->tid);
        if (is_there && has_all_code(r, doing)) {
            r->deadline_ns = now_ns() + REMOTE_LIMIT_NS;
            doing->outcome =
                do_call(r, doing->code, doing->call, doing->err) ? REMOTE_DONE : REMOTE_FAILED;
        } else {
            doing->outcome = is_there ? REMOTE_FAILED : REMOTE_ELSEWHERE;
            restart_call(r);
        }
    }
    (void)ptrace(PTRACE_DETACH, r->tid, NULL, NULL);
}

enum remote_outcome remote_do(pid_t pid, pid_t tid, const struct remote_place *place,
                              const struct remote_code *code, struct remote_call *call,
                              trail_error *err)
{
    struct doing doing = {.place = place, .code = code, .call = call, .err = err};
    doing.outcome = REMOTE_ELSEWHERE;
    doing.remote = calloc(1, sizeof *doing.remote);
    if (!doing.remote) {
        error_no_memory(err);
        return REMOTE_FAILED;
    }
    *doing.remote = (struct remote){.pid = pid, .tid = tid};
    int failed = tracer_run(do_in_thread, &doing);
    free(doing.remote);
    if (failed) {
        error_set(err, TRAIL_NO_MEMORY, "cannot start a thread: %s", strerror(failed));
        return REMOTE_FAILED;
    }
    return doing.outcome;
}

#else

enum remote_outcome remote_do(pid_t pid, pid_t tid, const struct remote_place *place,
                              const struct remote_code *code, struct remote_call *call,
                              trail_error *err)
{
    (void)pid, (void)tid, (void)place, (void)code, (void)call;
    error_set(err, TRAIL_USAGE, "running programs can be recorded on x86-64 only");
    return REMOTE_FAILED;
}

#endif
