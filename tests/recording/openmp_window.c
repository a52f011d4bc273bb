/*
 * A task for which libomp wakes no thread.
 *
 * A thread at a barrier looks for tasks, finds none, and goes to sleep: it takes a lock and notes
 * that it sleeps. The thread that makes the first task of a parallel region wakes the threads that
 * have this note. A task made between the look and the note wakes no thread; it runs when its
 * creator reaches a taskwait or a barrier, where OpenMP requires it.
 *
 * For that lock, libomp calls pthread_mutex_lock, which this program defines: it stops the thread
 * between look and note until the task is made. With "late" the thread reaches the barrier only
 * after that, and must find the task. Prints whether the thread was stopped, whether the task ran
 * while its creator waited outside OpenMP, and whether it ran at all.
 *
 * usage: openmp_window held|late, with KMP_BLOCKTIME=0
 */
#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 100  /* less than the test's own limit */
#define A_WHILE 1000 /* naps of 1 ms */

static _Thread_local bool to_be_held;
static int held, made, ran;

static void say(int *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static bool is_said(const int *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void nap(void)
{
    struct timespec t = {0, 1000000};
    nanosleep(&t, NULL);
}

static void until(const int *flag)
{
    while (!is_said(flag))
        nap();
}

static bool for_a_while(const int *flag)
{
    for (int i = 0; i < A_WHILE && !is_said(flag); i++)
        nap();
    return is_said(flag);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int (*next)(pthread_mutex_t *) =
        (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    if (to_be_held) {
        to_be_held = false;
        say(&held);
        until(&made);
    }
    return next(mutex);
}

static void make_task(bool is_late)
{
    bool ran_meanwhile;
    if (!is_late)
        (void)for_a_while(&held);
#pragma omp task
    say(&ran);
    say(&made);
    if (is_late)
        until(&ran);
    ran_meanwhile = for_a_while(&ran);
#pragma omp taskwait
    printf("held %d, ran meanwhile %d, ran %d\n", is_said(&held), ran_meanwhile, is_said(&ran));
}

int main(int argc, char **argv)
{
    bool is_late = argc > 1 && strcmp(argv[1], "late") == 0;
    (void)alarm(LIMIT_S);
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0)
        make_task(is_late);
    else if (is_late)
        until(&made);
    else
        to_be_held = true;
    return 0;
}
