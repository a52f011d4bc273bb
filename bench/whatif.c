/*
 * Programs for bench/whatif: each as it is, and with a change that trail whatif can predict.
 */

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "whatif.h"

enum { ROUNDS = 40, THREADS = 4 };

static pthread_mutex_t first_mu = PTHREAD_MUTEX_INITIALIZER, second_mu = PTHREAD_MUTEX_INITIALIZER;

/* MARK: Work */

/* A device or a peer that takes its time. */
static void idle(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

static void run_threads(void *(*const start[])(void *), int count)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, start[i], NULL);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* MARK: Locks */

static void *holds_long(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&first_mu);
        idle(changed ? 1500 : 3000);
        pthread_mutex_unlock(&first_mu);
        idle(2000);
    }
    return NULL;
}

/* --hold=first_mu=0.5x */
static void hold_halved(void)
{
    run_threads((void *(*const[])(void *)){holds_long, holds_long, holds_long, holds_long}, 4);
}

static void *uses_lock(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        if (!changed)
            pthread_mutex_lock(&first_mu);
        idle(3000);
        if (!changed)
            pthread_mutex_unlock(&first_mu);
        idle(1000);
    }
    return NULL;
}

/* --free=first_mu: each has a lock of its own */
static void lock_split(void)
{
    run_threads((void *(*const[])(void *)){uses_lock, uses_lock, uses_lock}, 3);
}

static void *uses_both(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&first_mu);
        idle(changed ? 400 : 4000);
        pthread_mutex_unlock(&first_mu);
        pthread_mutex_lock(&second_mu);
        idle(3000);
        pthread_mutex_unlock(&second_mu);
    }
    return NULL;
}

/* --hold=first_mu=0.1x: the second lock is the next bottleneck */
static void next_behind(void)
{
    run_threads((void *(*const[])(void *)){uses_both, uses_both, uses_both}, 3);
}

static void *logs(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        if (!changed)
            pthread_mutex_lock(&first_mu);
        idle(2000);
        if (!changed)
            pthread_mutex_unlock(&first_mu);
    }
    return NULL;
}

static void *outlasts_both(void *arg)
{
    (void)arg;
    burn(300000);
    return NULL;
}

/* --free=first_mu: its waits delay only threads that are not waited for */
static void lock_off_path(void)
{
    run_threads((void *(*const[])(void *)){outlasts_both, logs, logs}, 3);
}

static pthread_rwlock_t table_rw = PTHREAD_RWLOCK_INITIALIZER;

static void *writes(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_rwlock_wrlock(&table_rw);
        burn(changed ? 3000 : 6000);
        pthread_rwlock_unlock(&table_rw);
        idle(2000);
    }
    return NULL;
}

static void *reads(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        pthread_rwlock_rdlock(&table_rw);
        burn(100);
        pthread_rwlock_unlock(&table_rw);
        idle(700);
    }
    return NULL;
}

/* --hold=table_rw=0.5x: of the readers, nearly nothing is held */
static void writer_halved(void)
{
    run_threads((void *(*const[])(void *)){writes, reads, reads, reads}, 4);
}

/* MARK: Functions */

static void *slow_side(void *arg)
{
    (void)arg;
    burn(changed ? 150000 : 300000);
    return NULL;
}

static void *quick_side(void *arg)
{
    (void)arg;
    burn(100000);
    return NULL;
}

/* --faster=slow_side=2x */
static void on_the_path(void)
{
    run_threads((void *(*const[])(void *)){slow_side, quick_side}, 2);
}

static void *short_side(void *arg)
{
    (void)arg;
    burn(changed ? 50000 : 100000);
    return NULL;
}

static void *long_side(void *arg)
{
    (void)arg;
    burn(300000);
    return NULL;
}

/* --faster=short_side=2x */
static void off_the_path(void)
{
    run_threads((void *(*const[])(void *)){long_side, short_side}, 2);
}

/* MARK: Queues */

static int items[2];

static void *produce(void *arg)
{
    char item = 1;
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        burn(1000);
        if (write(items[1], &item, 1) != 1)
            break;
    }
    close(items[1]);
    return NULL;
}

static void *consume(void *arg)
{
    char item;
    (void)arg;
    while (read(items[0], &item, 1) == 1)
        burn(changed ? 2500 : 5000);
    return NULL;
}

/* --faster=consume=2x */
static void slow_consumer(void)
{
    if (pipe(items) == 0)
        run_threads((void *(*const[])(void *)){produce, consume}, 2);
}

static sem_t asked, answered;

static void *client(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        burn(1500);
        sem_post(&asked);
        sem_wait(&answered);
    }
    return NULL;
}

static void *server(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        sem_wait(&asked);
        burn(changed ? 2500 : 5000);
        sem_post(&answered);
    }
    return NULL;
}

/* --faster=server=2x: never both at once */
static void request_answer(void)
{
    if (sem_init(&asked, 0, 0) == 0 && sem_init(&answered, 0, 0) == 0)
        run_threads((void *(*const[])(void *)){client, server}, 2);
}

/* MARK: CPUs */

static void *half(void *arg)
{
    (void)arg;
    burn(150000);
    return NULL;
}

/* --cpus=2: both run this, the first of them on one CPU */
static void two_cpus(void)
{
    run_threads((void *(*const[])(void *)){half, half}, 2);
}

static void *sort_side(void *arg)
{
    (void)arg;
    burn(changed ? 100000 : 200000);
    return NULL;
}

static void *other_side(void *arg)
{
    (void)arg;
    burn(120000);
    return NULL;
}

/* --faster=sort_side=2x: four threads share two CPUs */
static void shared_cpus(void)
{
    run_threads((void *(*const[])(void *)){sort_side, other_side, other_side, other_side}, 4);
}

/* MARK: Outside */

/* A child process that answers each byte after a time. */
struct peer {
    int ask[2], answer[2];
};

static void serve(const struct peer *peer, long us)
{
    char byte;
    while (read(peer->ask[0], &byte, 1) == 1) {
        idle(us);
        if (write(peer->answer[1], &byte, 1) != 1)
            break;
    }
    _exit(0);
}

static bool peer_begin(struct peer *peer, long us)
{
    if (pipe2(peer->ask, O_CLOEXEC) || pipe2(peer->answer, O_CLOEXEC))
        return false;
    pid_t child = fork();
    if (child == 0) {
        close(peer->ask[1]);
        serve(peer, us);
    }
    return child > 0;
}

static void request(const struct peer *peer)
{
    char byte = 1;
    if (write(peer->ask[1], &byte, 1) != 1 || read(peer->answer[0], &byte, 1) != 1)
        perror("request");
}

static struct peer disk;

/* --io=read=0.2x */
static void faster_disk(void)
{
    if (!peer_begin(&disk, changed ? 1000 : 5000))
        return;
    for (int i = 0; i < ROUNDS; i++) {
        burn(1000);
        request(&disk);
    }
}

/* --io=read=0.25x: a request for four items instead of for each */
static void batch_size(void)
{
    if (!peer_begin(&disk, 5000))
        return;
    for (int i = 0; i < ROUNDS; i++) {
        burn(1000);
        if (!changed || i % 4 == 3)
            request(&disk);
    }
}

static void *asks_with_lock(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS / 8; i++) {
        pthread_mutex_lock(&first_mu);
        request(&disk);
        pthread_mutex_unlock(&first_mu);
        burn(1000);
    }
    return NULL;
}

/* --io=read=0.2x: it is waited for with a lock held */
static void disk_in_lock(void)
{
    if (peer_begin(&disk, changed ? 4000 : 20000))
        run_threads((void *(*const[])(void *)){asks_with_lock, asks_with_lock, asks_with_lock}, 3);
}

static void *asks_own_peer(void *arg)
{
    struct peer peer;
    (void)arg;
    pthread_mutex_lock(&first_mu);
    bool good = peer_begin(&peer, 5000);
    pthread_mutex_unlock(&first_mu);
    for (int i = 0; good && i < ROUNDS / 2; i++) {
        if (!changed)
            pthread_mutex_lock(&second_mu);
        request(&peer);
        if (!changed)
            pthread_mutex_unlock(&second_mu);
        burn(1000);
    }
    return NULL;
}

/* --free=second_mu: requests of several threads at once */
static void convoy_broken(void)
{
    run_threads((void *(*const[])(void *)){asks_own_peer, asks_own_peer, asks_own_peer}, 3);
}

static const struct pair pairs[] = {
    {"hold-halved", hold_halved},       {"lock-split", lock_split},
    {"next-behind", next_behind},       {"lock-off-path", lock_off_path},
    {"writer-halved", writer_halved},   {"on-the-path", on_the_path},
    {"off-the-path", off_the_path},     {"slow-consumer", slow_consumer},
    {"request-answer", request_answer}, {"two-cpus", two_cpus},
    {"shared-cpus", shared_cpus},       {"faster-disk", faster_disk},
    {"batch-size", batch_size},         {"disk-in-lock", disk_in_lock},
    {"convoy-broken", convoy_broken},
};

int main(int argc, char **argv)
{
    return RUN_PAIR(pairs, argc, argv);
}
