/*
 * A program whose threads make calls of each recorded kind, in an order that does not depend on
 * time. getppid() marks where a started thread begins. With "forks" it first creates a process.
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 3 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int turn; /* protected by the mutex */

static void nothing(void)
{
}

static void take_turns(int own)
{
    pthread_mutex_lock(&mutex);
    while (turn % 2 != own)
        pthread_cond_wait(&condition, &mutex);
    turn++;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
}

static void lock(void)
{
    pthread_cond_t own_condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_t own_mutex = PTHREAD_MUTEX_INITIALIZER;
    sem_t semaphore;
    const struct timespec past = {0, 1};
    pthread_once(&once, nothing);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    CHECK(sem_init(&semaphore, 0, 0) == 0 && sem_timedwait(&semaphore, &past) == -1 &&
          errno == ETIMEDOUT);
    sem_post(&semaphore);
    sem_wait(&semaphore);
    pthread_mutex_lock(&own_mutex);
    CHECK(pthread_cond_timedwait(&own_condition, &own_mutex, &past) == ETIMEDOUT);
    pthread_mutex_unlock(&own_mutex);
}

static void use_descriptors(void)
{
    int fds[2], set = epoll_create1(EPOLL_CLOEXEC), event = eventfd(1, EFD_CLOEXEC);
    char byte = 'x', text[64];
    uint64_t number;
    struct epoll_event got = {.events = EPOLLIN};
    fd_set reads;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fds[0], &got) == 0);
    CHECK(write(fds[1], &byte, 1) == 1 && epoll_wait(set, &got, 1, -1) == 1);
    struct pollfd polled = {fds[0], POLLIN, 0};
    CHECK(poll(&polled, 1, -1) == 1);
    FD_ZERO(&reads);
    FD_SET(fds[0], &reads);
    CHECK(select(fds[0] + 1, &reads, NULL, NULL, NULL) == 1);
    CHECK(recv(fds[0], &byte, 1, 0) == 1 && read(event, &number, sizeof number) == sizeof number);
    CHECK(close(fds[0]) == 0 && close(fds[1]) == 0 && close(set) == 0 && close(event) == 0);
    CHECK(pipe2(fds, O_CLOEXEC) == 0 && write(fds[1], &byte, 1) == 1 &&
          read(fds[0], &byte, 1) == 1);
    CHECK(close(fds[0]) == 0 && close(fds[1]) == 0);
    FILE *file = fopen("/dev/null", "r+");
    CHECK(file && fprintf(file, "%d\n", 1) > 0 && fflush(file) == 0 &&
          !fgets(text, sizeof text, file));
    CHECK(fclose(file) == 0);
}

static void sleep_a_moment(void)
{
    const struct timespec moment = {0, 2000000};
    sigset_t none;
    sigemptyset(&none);
    CHECK(nanosleep(&moment, NULL) == 0 && clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL) == 0);
    CHECK(usleep(2000) == 0 && sigtimedwait(&none, NULL, &moment) == -1);
}

static void *works(void *own)
{
    (void)getppid();
    for (int i = 0; i < ROUNDS; i++) {
        take_turns(own != NULL);
        lock();
        use_descriptors();
        sleep_a_moment();
        pthread_barrier_wait(&barrier);
    }
    return own;
}

static int make_another(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc > 1 && strcmp(argv[1], "forks") == 0)
        CHECK(make_another() == 0);
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, works, &rwlock) == 0);
    works(NULL);
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}
