/*
 * CPU samples by timers in the program, for kernels that do not allow any from outside. Only on
 * request, because a signal can end a call that would have continued (poll returns EINTR despite
 * SA_RESTART). Each thread's timer counts its CPU time, so a waiting thread gets no signals.
 */
#include <signal.h>
#include <time.h>
#include <ucontext.h>

#include "preload/preload.h"

#define SIGNAL SIGPROF

/* The registers of the interrupted code; a walk begins at the PC plus one (unwind.h). */
static struct unwind_start interrupted(const ucontext_t *context)
{
#if defined(__x86_64__)
    const greg_t *registers = context->uc_mcontext.gregs;
    return (struct unwind_start){(uintptr_t)registers[REG_RIP] + 1, (uintptr_t)registers[REG_RSP],
                                 (uintptr_t)registers[REG_RBP]};
#elif defined(__aarch64__)
    return (struct unwind_start){context->uc_mcontext.pc + 1, context->uc_mcontext.sp,
                                 context->uc_mcontext.regs[29]};
#else
    (void)context;
    return (struct unwind_start){0};
#endif
}

static void take_sample(int number, siginfo_t *info, void *context)
{
    struct shm_record record = {.kind = SHM_SAMPLED};
    struct unwind_start start = interrupted(context);
    int old_errno = errno;
    (void)number;
    (void)info;
    if (!preload.area || !self.slot || !is_wanted(~0u))
        return;
    if (record_begin()) {
        record.stack = stack_of(&start);
        record.time = clock_now();
        record_put(&record);
        record_end();
    } else {
        __atomic_fetch_add(&preload.area->header.lost_samples, 1, __ATOMIC_RELAXED);
    }
    errno = old_errno;
}

void samples_prepare(void)
{
    struct sigaction old,
        ours = {.sa_sigaction = take_sample, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    preload.sample_ns = preload.area->header.sample_ns;
    if (preload.sample_ns == 0)
        return;
    /* A program that uses the signal itself keeps it. */
    if (sigaction(SIGNAL, NULL, &old) != 0 || old.sa_handler != SIG_DFL ||
        sigaction(SIGNAL, &ours, NULL) != 0)
        preload.sample_ns = 0;
}

void samples_begin(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL};
    struct itimerspec every = {0};
    if (preload.sample_ns == 0 || is_confined())
        return;
    /* sigev_notify_thread_id, for which glibc has no name. */
    event._sigev_un._tid = (pid_t)self.slot->tid;
    every.it_interval.tv_sec = (time_t)(preload.sample_ns / 1000000000);
    every.it_interval.tv_nsec = (long)(preload.sample_ns % 1000000000);
    every.it_value = every.it_interval;
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &self.timer) != 0)
        return;
    self.has_timer = true;
    (void)timer_settime(self.timer, 0, &every, NULL);
}

void samples_end(void)
{
    if (self.has_timer && !is_confined())
        (void)timer_delete(self.timer);
    self.has_timer = false;
}
