/* See tracer.h. */
#include "stuck/tracer.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct tracer {
    void (*function)(void *context);
    void *context;
    pid_t tid;
};

static void *run(void *argument)
{
    struct tracer *tracer = argument;
    tracer->tid = (pid_t)syscall(SYS_gettid);
    tracer->function(tracer->context);
    return NULL;
}

/* pthread_join returns before the kernel has detached everything: until then nothing else can trace
 * those threads. */
static void await_end(pid_t tid)
{
    while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
        (void)nanosleep(&(struct timespec){0, 100000}, NULL);
}

int tracer_run(void (*function)(void *context), void *context)
{
    struct tracer tracer = {function, context, 0};
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, run, &tracer);
    if (failed)
        return failed;
    (void)pthread_join(thread, NULL);
    await_end(tracer.tid);
    return 0;
}
