/*
 * Programs for bench/coz, of the kind that Coz is made for: functions that compute, and a point that counts progress.
 * Each is run as it is, and with the change that both tools are asked about.
 *
 * Coz is asked about the line that computes, trail whatif about its function; hence each function has one.
 */

#include <coz.h>
#include <pthread.h>
#include <semaphore.h>

#include "whatif.h"

/* A unit of work is about 0.7 ms; the whole takes some seconds. */
enum { LOOPS = 2000000, ROUNDS = 500 };

/* Without memory, whose speed depends on addresses. */
#define COMPUTE(units)                                                                             \
    for (long i = (units)*LOOPS; i > 0; i--)                                                       \
    __asm__ volatile("")

static void run_both(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

/* MARK: Two sides that meet at a barrier */

static pthread_barrier_t round_end;

/* The loop and its end are one line. */
/* clang-format off */
static void heavy(int units) { COMPUTE(units); }
static void light(int units) { COMPUTE(units); }
static void outside(int units) { COMPUTE(units); }
static void inside(int units) { COMPUTE(units); }
static void produce(int units) { COMPUTE(units); }
static void consume(int units) { COMPUTE(units); }
/* clang-format on */

static int heavy_units = 6, light_units = 4;

static void *heavy_side(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        heavy(heavy_units);
        pthread_barrier_wait(&round_end);
        COZ_PROGRESS;
    }
    return arg;
}

static void *light_side(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        light(light_units);
        pthread_barrier_wait(&round_end);
    }
    return arg;
}

static void two_sides(void)
{
    pthread_barrier_init(&round_end, NULL, 2);
    run_both(heavy_side, light_side);
}

/* --faster=heavy=2x: then the other side is the slower one */
static void heavy_halved(void)
{
    heavy_units = changed ? 3 : 6;
    two_sides();
}

/* --faster=light=2x: gains nothing */
static void light_halved(void)
{
    light_units = changed ? 2 : 4;
    two_sides();
}

/* MARK: A queue */

static sem_t items;

static void *producer(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        produce(3);
        sem_post(&items);
    }
    return arg;
}

static void *consumer(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        sem_wait(&items);
        consume(changed ? 4 : 8);
        COZ_PROGRESS;
    }
    return arg;
}

/* --faster=consume=2x */
static void slow_consumer(void)
{
    sem_init(&items, 0, 0);
    run_both(producer, consumer);
}

/* MARK: A lock */

static pthread_mutex_t table_mu = PTHREAD_MUTEX_INITIALIZER;

static void *uses_table(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        outside(1);
        pthread_mutex_lock(&table_mu);
        inside(changed ? 2 : 4);
        pthread_mutex_unlock(&table_mu);
        COZ_PROGRESS;
    }
    return arg;
}

/* --faster=inside=2x */
static void section_halved(void)
{
    run_both(uses_table, uses_table);
}

static void *sleeps_in_lock(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        outside(1);
        pthread_mutex_lock(&table_mu);
        usleep(changed ? 2000 : 4000);
        pthread_mutex_unlock(&table_mu);
        COZ_PROGRESS;
    }
    return arg;
}

/* --hold=table_mu=0.5x: Coz is asked about the line that sleeps */
static void sleep_halved(void)
{
    run_both(sleeps_in_lock, sleeps_in_lock);
}

static const struct pair pairs[] = {
    {"heavy-halved", heavy_halved},   {"light-halved", light_halved},
    {"slow-consumer", slow_consumer}, {"section-halved", section_halved},
    {"sleep-halved", sleep_halved},
};

int main(int argc, char **argv)
{
    return RUN_PAIR(pairs, argc, argv);
}
