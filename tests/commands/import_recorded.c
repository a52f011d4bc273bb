/*
 * The program that is recorded with other tools' recorders.
 *
 *     relay NAME   the main thread and a thread named NAME wake each other through pipes, 20 times,
 *                  each once the other is seen asleep
 *     mutex NAME   the named thread wants a mutex, 10 times; the main thread holds the mutex until
 *                  it sees the other asleep
 *
 * Prints the TIDs of both, and the mutex's address.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RELAYS = 20, LOCKS = 10 };

static int to_second[2], to_main[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *name;
static atomic_int second, requests;

static void pass(const int *pipe)
{
    if (write(pipe[1], "x", 1) != 1)
        abort();
}

static void await(const int *pipe)
{
    char byte;
    if (read(pipe[0], &byte, 1) != 1)
        abort();
}

static int sleeps(int tid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    int fd = open(path, O_RDONLY);
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    const char *state = size > 0 ? strrchr(text, ')') : NULL;
    return state && state[2] == 'S';
}

/* The threads wait for nothing else while observed. */
static void wait_until_sleeps(int tid)
{
    while (!sleeps(tid))
        usleep(1000);
}

static void begin(void)
{
    prctl(PR_SET_NAME, name);
    atomic_store(&second, (int)syscall(SYS_gettid));
}

static void *relay(void *unused)
{
    begin();
    for (int i = 0; i < RELAYS; i++) {
        await(to_second);
        wait_until_sleeps((int)getpid());
        pass(to_main);
    }
    return unused;
}

static void *want(void *unused)
{
    begin();
    for (int i = 0; i < LOCKS; i++) {
        await(to_second);
        atomic_fetch_add(&requests, 1);
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        pass(to_main);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 3)
        return 2;
    int relays = strcmp(argv[1], "relay") == 0;
    name = argv[2];
    if (pipe(to_second) < 0 || pipe(to_main) < 0 ||
        pthread_create(&thread, NULL, relays ? relay : want, NULL) != 0)
        return 1;
    while (atomic_load(&second) == 0)
        usleep(1000);
    for (int i = 0; relays && i < RELAYS; i++) {
        wait_until_sleeps(atomic_load(&second));
        pass(to_second);
        await(to_main);
    }
    for (int i = 0; !relays && i < LOCKS; i++) {
        pthread_mutex_lock(&mutex);
        pass(to_second);
        while (atomic_load(&requests) <= i)
            usleep(1000);
        wait_until_sleeps(atomic_load(&second));
        pthread_mutex_unlock(&mutex);
        await(to_main);
    }
    pthread_join(thread, NULL);
    printf("%d %d %p\n", (int)getpid(), atomic_load(&second), (void *)&mutex);
    return 0;
}
