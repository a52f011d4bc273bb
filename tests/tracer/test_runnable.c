/* Whether a thread waits only for a CPU, according to /proc: one that spins, one that sleeps, one
 * that does not exist. */

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "tracer/runnable.h"

struct thread {
    pthread_t thread;
    const char *name;
    pid_t id; /* atomic */
    int pipe[2];
    bool quit; /* atomic */
};

static void *spin(void *arg)
{
    struct thread *thread = arg;
    __atomic_store_n(&thread->id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (!__atomic_load_n(&thread->quit, __ATOMIC_ACQUIRE))
        ;
    return NULL;
}

static void *sleep_in_read(void *arg)
{
    struct thread *thread = arg;
    char byte;
    pthread_setname_np(pthread_self(), thread->name);
    __atomic_store_n(&thread->id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    (void)!read(thread->pipe[0], &byte, 1);
    return NULL;
}

static pid_t started(struct thread *thread, void *(*run)(void *arg))
{
    pid_t id;
    assert_int_equal(pipe(thread->pipe), 0);
    assert_int_equal(pthread_create(&thread->thread, NULL, run, thread), 0);
    while (!(id = __atomic_load_n(&thread->id, __ATOMIC_ACQUIRE)))
        sched_yield();
    return id;
}

static void ended(struct thread *thread)
{
    __atomic_store_n(&thread->quit, true, __ATOMIC_RELEASE);
    close(thread->pipe[1]);
    pthread_join(thread->thread, NULL);
    close(thread->pipe[0]);
}

TEST(a_spinning_thread_is)
{
    struct thread thread = {0};
    pid_t id = started(&thread, spin);
    for (int i = 0; i < 100; i++)
        assert_true(thread_is_runnable(id));
    ended(&thread);
}

/* The name is on the same line as the state, and may look like one. */
TEST(a_sleeping_thread_is_not)
{
    static const char *const names[] = {"sleeper", "a) R (b", ")", ") R 1 1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct thread thread = {.name = names[i]};
        pid_t id = started(&thread, sleep_in_read);
        while (thread_is_runnable(id))
            sched_yield();
        for (int j = 0; j < 100; j++)
            assert_false(thread_is_runnable(id));
        ended(&thread);
    }
}

TEST(a_thread_that_is_gone_is_not)
{
    struct thread thread = {.name = "gone"};
    pid_t id = started(&thread, sleep_in_read);
    ended(&thread);
    /* pthread_join may return before the kernel has removed it. */
    while (thread_is_runnable(id))
        sched_yield();
    assert_false(thread_is_runnable(id));
    assert_false(thread_is_runnable(-1));
}

int main(void)
{
    /* A hang is a failure. */
    alarm(60);
    return run_all_tests(NULL, NULL);
}
