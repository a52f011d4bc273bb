/* Locks, conditions, semaphores and threads with known answers: see answers.h. Runs one
 * scenario. */
#include "answers.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/prctl.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void join_all(const pthread_t *threads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* MARK: Mutexes: lanes, in which one thread holds the mutex in a function of its own while another
 * waits */

struct lane {
    pthread_mutex_t mutex;
    struct release *waker;
    about_to_wait waiter;
    long hold_ns;
};

#define LANE(name)                                                                                 \
    static IN_STACKS void waits_##name(struct lane *lane)                                          \
    {                                                                                              \
        about(&lane->waiter);                                                                      \
        MEASURED("mutex", &lane->mutex, lane->waker, pthread_mutex_lock(&lane->mutex));            \
        pthread_mutex_unlock(&lane->mutex);                                                        \
    }                                                                                              \
    static void *waiter_##name(void *lane)                                                         \
    {                                                                                              \
        waits_##name(lane);                                                                        \
        return NULL;                                                                               \
    }                                                                                              \
    static IN_STACKS void holds_##name(struct lane *lane)                                          \
    {                                                                                              \
        pthread_t waiter;                                                                          \
        pthread_mutex_lock(&lane->mutex);                                                          \
        waiter = start(waiter_##name, lane);                                                       \
        until_it_waits(&lane->waiter);                                                             \
        sleep_ns(lane->hold_ns);                                                                   \
        LETS_GO(lane->waker, pthread_mutex_unlock(&lane->mutex));                                  \
        pthread_join(waiter, NULL);                                                                \
    }                                                                                              \
    static void *holder_##name(void *lane_)                                                        \
    {                                                                                              \
        struct lane *lane = lane_;                                                                 \
        for (int i = 0; i < 4; i++, lane->hold_ns *= 2)                                            \
            holds_##name(lane);                                                                    \
        return NULL;                                                                               \
    }

LANE(alpha)
LANE(beta)
LANE(gamma)
LANE(delta)

static void mutexes(void)
{
    static void *(*const routines[])(void *) = {holder_alpha, holder_beta, holder_gamma,
                                                holder_delta};
    static struct lane lanes[COUNT(routines)];
    pthread_t threads[COUNT(routines)];
    for (size_t i = 0; i < COUNT(routines); i++) {
        pthread_mutex_init(&lanes[i].mutex, NULL);
        lanes[i].hold_ns = (long)(i + 1) * MS;
        threads[i] = start(routines[i], &lanes[i]);
    }
    join_all(threads, COUNT(threads));
}

/* Runs once per line of input. */
static void rounds(void)
{
    static struct lane lane = {.mutex = PTHREAD_MUTEX_INITIALIZER, .hold_ns = 20 * MS};
    char line[10];
    while (fgets(line, sizeof line, stdin)) {
        for (int i = 0; i < 15; i++)
            holds_alpha(&lane);
        printf("done\n");
        fflush(stdout);
    }
}

/* MARK: A chain: A waits for a lock that B holds; B waits for one that C holds */

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static struct release *first_waker, *second_waker;
static about_to_wait a_waits, b_waits;

static IN_STACKS void a_waits_for_b(void)
{
    about(&a_waits);
    MEASURED("mutex", &first, first_waker, pthread_mutex_lock(&first));
    pthread_mutex_unlock(&first);
}

static void *chain_a(void *none)
{
    a_waits_for_b();
    return none;
}

static IN_STACKS void b_waits_for_c(void)
{
    about(&b_waits);
    MEASURED("mutex", &second, second_waker, pthread_mutex_lock(&second));
}

static IN_STACKS void b_lets_a_go(void)
{
    pthread_mutex_unlock(&second);
    LETS_GO(first_waker, pthread_mutex_unlock(&first));
}

static void *chain_b(void *none)
{
    pthread_t a;
    pthread_mutex_lock(&first);
    a = start(chain_a, none);
    until_it_waits(&a_waits);
    b_waits_for_c();
    sleep_ns(5 * MS);
    b_lets_a_go();
    pthread_join(a, NULL);
    return none;
}

static IN_STACKS void c_lets_b_go(void)
{
    LETS_GO(second_waker, pthread_mutex_unlock(&second));
}

static void chain(void)
{
    pthread_t b;
    pthread_mutex_lock(&second);
    b = start(chain_b, NULL);
    until_it_waits(&b_waits);
    sleep_ns(15 * MS);
    c_lets_b_go();
    pthread_join(b, NULL);
}

/* MARK: A queue: woken in order of arrival, each thread by the one before */

static pthread_mutex_t counter = PTHREAD_MUTEX_INITIALIZER;
static struct release *counter_waker;
static about_to_wait queued;

static IN_STACKS void serves_next(void)
{
    sleep_ns(2 * MS);
    LETS_GO(counter_waker, pthread_mutex_unlock(&counter));
}

static IN_STACKS void queues_up(void)
{
    about(&queued);
    MEASURED("mutex", &counter, counter_waker, pthread_mutex_lock(&counter));
}

static void *customer(void *none)
{
    queues_up();
    serves_next();
    return none;
}

static void queue(void)
{
    pthread_t threads[6];
    pthread_mutex_lock(&counter);
    for (size_t i = 0; i < COUNT(threads); i++) {
        threads[i] = start(customer, NULL);
        until_it_waits(&queued);
    }
    serves_next();
    join_all(threads, COUNT(threads));
}

/*
 * MARK: A convoy: many threads repeatedly take one mutex. Only its start is forced, when all wait.
 * Later a thread may take the mutex before the one that was woken for it.
 */

static about_to_wait members_wait[8];

static IN_STACKS void joins_convoy(void)
{
    MEASURED("mutex", &counter, counter_waker, pthread_mutex_lock(&counter));
}

static IN_STACKS void leaves_convoy(void)
{
    LETS_GO(counter_waker, pthread_mutex_unlock(&counter));
}

static void *convoy_member(void *number)
{
    about(&members_wait[(intptr_t)number]);
    for (int i = 0; i < 25; i++) {
        joins_convoy();
        sleep_ns(MS / 5);
        leaves_convoy();
    }
    return NULL;
}

static void convoy(void)
{
    pthread_t threads[COUNT(members_wait)];
    pthread_mutex_lock(&counter);
    for (size_t i = 0; i < COUNT(threads); i++) {
        threads[i] = start(convoy_member, (void *)(uintptr_t)i);
        until_it_waits(&members_wait[i]);
    }
    leaves_convoy();
    join_all(threads, COUNT(threads));
}

/* MARK: Readers and writers */

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static struct release *writer_waker, *reader_waker;
static about_to_wait readers_wait[4], writer_waits;
static atomic_int turn;

static IN_STACKS void reads_table(about_to_wait *who)
{
    about(who);
    MEASURED("rwlock to read", &table, writer_waker, pthread_rwlock_rdlock(&table));
}

static IN_STACKS void stops_reading(int number)
{
    while (atomic_load(&turn) != number)
        sleep_ns(MS / 5);
    LETS_GO(reader_waker, pthread_rwlock_unlock(&table));
    atomic_store(&turn, number + 1);
}

static void *reader(void *number)
{
    int i = (int)(intptr_t)number;
    reads_table(&readers_wait[i]);
    stops_reading(i);
    return NULL;
}

static IN_STACKS void writes_table(void)
{
    about(&writer_waits);
    MEASURED("rwlock to write", &table, reader_waker, pthread_rwlock_wrlock(&table));
    pthread_rwlock_unlock(&table);
}

static void *writer(void *none)
{
    writes_table();
    return none;
}

static IN_STACKS void stops_writing(void)
{
    LETS_GO(writer_waker, pthread_rwlock_unlock(&table));
}

/* All readers wait for the first writer; then the second writer waits for all readers, which unlock
 * one after another. */
static void readers(void)
{
    pthread_t threads[5];
    atomic_store(&turn, -1);
    pthread_rwlock_wrlock(&table);
    for (int i = 0; i < 4; i++) {
        threads[i] = start(reader, (void *)(intptr_t)i);
        until_it_waits(&readers_wait[i]);
    }
    sleep_ns(10 * MS);
    stops_writing();
    while (answer_count < 4)
        sleep_ns(MS / 5);
    threads[4] = start(writer, NULL);
    until_it_waits(&writer_waits);
    sleep_ns(10 * MS);
    atomic_store(&turn, 0);
    join_all(threads, COUNT(threads));
}

/* MARK: A producer and a consumer; a pool of threads */

#define ROOM  4
#define TURNS 10

static pthread_mutex_t goods_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static int goods, delivered;
static struct release *produced, *consumed;
static about_to_wait producer_waits, consumer_waits;

static IN_STACKS void waits_for_goods(void)
{
    about(&consumer_waits);
    MEASURED("condition", &not_empty, produced, pthread_cond_wait(&not_empty, &goods_lock));
}

static IN_STACKS void waits_for_room(void)
{
    about(&producer_waits);
    MEASURED("condition", &not_full, consumed, pthread_cond_wait(&not_full, &goods_lock));
}

static IN_STACKS void produces(void)
{
    pthread_mutex_lock(&goods_lock);
    while (goods == ROOM)
        waits_for_room();
    goods++;
    LETS_GO(produced, pthread_cond_signal(&not_empty));
    pthread_mutex_unlock(&goods_lock);
}

static IN_STACKS void consumes(void)
{
    pthread_mutex_lock(&goods_lock);
    while (goods == 0)
        waits_for_goods();
    goods--;
    LETS_GO(consumed, pthread_cond_signal(&not_full));
    pthread_mutex_unlock(&goods_lock);
}

/* Waits for room TURNS times, then delivers each further item only when the consumer waits for
 * it. */
static void *producer(void *none)
{
    for (int i = 0; i < ROOM + TURNS; i++)
        produces();
    atomic_store(&turn, 1);
    for (int i = 0; i < TURNS; i++) {
        until_it_waits(&consumer_waits);
        produces();
    }
    return none;
}

static void *consumer(void *none)
{
    for (int i = 0; i < TURNS; i++) {
        until_it_waits(&producer_waits);
        consumes();
    }
    while (!atomic_load(&turn))
        sleep_ns(MS / 5);
    for (int i = 0; i < ROOM + TURNS; i++)
        consumes();
    return none;
}

static void producer_consumer(void)
{
    pthread_t threads[2] = {start(producer, NULL), start(consumer, NULL)};
    join_all(threads, COUNT(threads));
}

static about_to_wait workers_wait[4];
static struct release *submitted;
static bool pool_over;

static IN_STACKS void waits_for_work(int number)
{
    about(&workers_wait[number]);
    MEASURED("condition", &not_empty, submitted, pthread_cond_wait(&not_empty, &goods_lock));
    atomic_store(&workers_wait[number], 0);
}

static void *worker(void *number)
{
    pthread_mutex_lock(&goods_lock);
    for (;;) {
        while (!goods && !pool_over)
            waits_for_work((int)(intptr_t)number);
        if (!goods)
            break;
        goods--;
        delivered++;
    }
    pthread_mutex_unlock(&goods_lock);
    return NULL;
}

static IN_STACKS void submits(void)
{
    pthread_mutex_lock(&goods_lock);
    goods++;
    LETS_GO(submitted, pthread_cond_signal(&not_empty));
    pthread_mutex_unlock(&goods_lock);
}

static IN_STACKS void closes_pool(void)
{
    pthread_mutex_lock(&goods_lock);
    pool_over = true;
    LETS_GO(submitted, pthread_cond_broadcast(&not_empty));
    pthread_mutex_unlock(&goods_lock);
}

static bool all_is_delivered(int count)
{
    bool is;
    pthread_mutex_lock(&goods_lock);
    is = delivered == count;
    pthread_mutex_unlock(&goods_lock);
    return is;
}

/* A worker that has delivered announces its next wait. */
static void until_the_pool_waits(int count)
{
    while (!all_is_delivered(count))
        sleep_ns(MS / 5);
    for (size_t i = 0; i < COUNT(workers_wait); i++) {
        while (!it_waits(&workers_wait[i]))
            sleep_ns(MS / 5);
    }
}

static void pool(void)
{
    pthread_t threads[COUNT(workers_wait)];
    for (size_t i = 0; i < COUNT(threads); i++)
        threads[i] = start(worker, (void *)(uintptr_t)i);
    for (int i = 0; i < TURNS; i++) {
        until_the_pool_waits(i);
        submits();
    }
    until_the_pool_waits(TURNS);
    closes_pool();
    join_all(threads, COUNT(threads));
}

/* MARK: Conditions: storms, and reacquiring the mutex */

static pthread_mutex_t storm_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t storm = PTHREAD_COND_INITIALIZER;
static struct release *storm_waker, *storm_releaser;
static int storm_round;
static about_to_wait storm_waits[16];

static IN_STACKS void waits_for_storm(int number)
{
    int round = storm_round;
    about(&storm_waits[number]);
    while (round == storm_round)
        MEASURED("condition", &storm, storm_waker, pthread_cond_wait(&storm, &storm_lock));
}

static void *storm_thread(void *number)
{
    pthread_mutex_lock(&storm_lock);
    for (int i = 0; i < 10; i++)
        waits_for_storm((int)(intptr_t)number);
    pthread_mutex_unlock(&storm_lock);
    return NULL;
}

static IN_STACKS void broadcasts(void)
{
    pthread_mutex_lock(&storm_lock);
    storm_round++;
    LETS_GO(storm_waker, pthread_cond_broadcast(&storm));
    pthread_mutex_unlock(&storm_lock);
}

static void storms(void)
{
    pthread_t threads[COUNT(storm_waits)];
    for (size_t i = 0; i < COUNT(threads); i++)
        threads[i] = start(storm_thread, (void *)(uintptr_t)i);
    for (int round = 0; round < 10; round++) {
        for (size_t i = 0; i < COUNT(threads); i++)
            until_it_waits(&storm_waits[i]);
        broadcasts();
    }
    join_all(threads, COUNT(threads));
}

/* The waiter prints two waits: for the signal, and for the mutex that the signalling thread still
 * held. */
static about_to_wait again_waits;

static IN_STACKS void waits_twice(void)
{
    int64_t begin;
    about(&again_waits);
    begin = now();
    pthread_cond_wait(&storm, &storm_lock);
    tell_end(__func__, "condition", &storm, begin, storm_waker);
    tell_end(__func__, "mutex again", &storm_lock, storm_waker->at, storm_releaser);
}

static void *again_thread(void *none)
{
    pthread_mutex_lock(&storm_lock);
    waits_twice();
    pthread_mutex_unlock(&storm_lock);
    return none;
}

static IN_STACKS void signals_and_keeps(void)
{
    pthread_mutex_lock(&storm_lock);
    LETS_GO(storm_waker, pthread_cond_signal(&storm));
}

static IN_STACKS void gives_mutex_up(void)
{
    LETS_GO(storm_releaser, pthread_mutex_unlock(&storm_lock));
}

/* The C library marks a mutex as contended before a thread waits for it. */
static bool is_waited_for(pthread_mutex_t *mutex)
{
    return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_ACQUIRE) == 2;
}

static void mutex_again(void)
{
    for (int i = 1; i <= 3; i++) {
        pthread_t thread = start(again_thread, NULL);
        int tid = until_it_waits(&again_waits);
        signals_and_keeps();
        while (!is_waited_for(&storm_lock) || !sleeps(tid))
            sleep_ns(MS / 5);
        gives_mutex_up();
        pthread_join(thread, NULL);
    }
}

/* MARK: Semaphores, barriers, once, join */

static sem_t tickets;
static struct release *ticket_waker;
static about_to_wait ticket_waits;

static IN_STACKS void waits_for_ticket(void)
{
    about(&ticket_waits);
    MEASURED("semaphore", &tickets, ticket_waker, sem_wait(&tickets));
}

static IN_STACKS void waits_for_ticket_in_time(void)
{
    struct timespec until = after(CLOCK_REALTIME, 600000 * MS);
    about(&ticket_waits);
    MEASURED("semaphore", &tickets, ticket_waker, sem_timedwait(&tickets, &until));
}

static IN_STACKS void waits_for_ticket_by_clock(void)
{
    struct timespec until = after(CLOCK_MONOTONIC, 600000 * MS);
    about(&ticket_waits);
    MEASURED("semaphore", &tickets, ticket_waker, sem_clockwait(&tickets, CLOCK_MONOTONIC, &until));
}

static void *visitor(void *none)
{
    waits_for_ticket();
    waits_for_ticket_in_time();
    waits_for_ticket_by_clock();
    return none;
}

static IN_STACKS void posts_ticket(void)
{
    LETS_GO(ticket_waker, sem_post(&tickets));
}

static void semaphores(void)
{
    pthread_t thread;
    sem_init(&tickets, 0, 0);
    thread = start(visitor, NULL);
    for (int i = 1; i <= 3; i++) {
        until_it_waits(&ticket_waits);
        sleep_ns(5 * MS * i);
        posts_ticket();
    }
    pthread_join(thread, NULL);
}

static pthread_barrier_t gate;
static struct release *gate_waker;
static about_to_wait gate_waits[4];

static IN_STACKS void waits_at_gate(int number)
{
    about(&gate_waits[number]);
    MEASURED("barrier", &gate, gate_waker, pthread_barrier_wait(&gate));
}

static void *gate_thread(void *number)
{
    waits_at_gate((int)(intptr_t)number);
    return NULL;
}

static IN_STACKS void arrives_last(void)
{
    LETS_GO(gate_waker, pthread_barrier_wait(&gate));
}

static void barriers(void)
{
    pthread_t threads[COUNT(gate_waits)];
    pthread_barrier_init(&gate, NULL, COUNT(threads) + 1);
    for (size_t i = 0; i < COUNT(threads); i++) {
        threads[i] = start(gate_thread, (void *)(uintptr_t)i);
        until_it_waits(&gate_waits[i]);
    }
    sleep_ns(10 * MS);
    arrives_last();
    join_all(threads, COUNT(threads));
}

static pthread_once_t once_control = PTHREAD_ONCE_INIT;
static struct release *once_waker;
static about_to_wait once_waits;
static void *once_second(void *none);
static pthread_t once_thread;

static void the_once_routine(void)
{
    once_thread = start(once_second, NULL);
    until_it_waits(&once_waits);
    sleep_ns(10 * MS);
    once_waker = new_release(me(), "runs_once", now());
}

static IN_STACKS void waits_for_once(void)
{
    about(&once_waits);
    MEASURED("once", &once_control, once_waker, pthread_once(&once_control, the_once_routine));
}

static void *once_second(void *none)
{
    waits_for_once();
    return none;
}

static IN_STACKS void runs_once(void)
{
    pthread_once(&once_control, the_once_routine);
    once_waker->done = now();
}

static void once(void)
{
    runs_once();
    pthread_join(once_thread, NULL);
}

static struct release *leaver;
static about_to_wait joiner_waits;

static void *leaves_late(void *none)
{
    until_it_waits(&joiner_waits);
    sleep_ns(10 * MS);
    leaver = new_release(me(), NULL, now());
    return none;
}

static IN_STACKS void waits_for_end(pthread_t thread)
{
    about(&joiner_waits);
    MEASURED("join", 0, leaver, pthread_join(thread, NULL));
}

static IN_STACKS void waits_for_end_in_time(pthread_t thread)
{
    struct timespec until = after(CLOCK_REALTIME, 600000 * MS);
    about(&joiner_waits);
    MEASURED("join", 0, leaver, pthread_timedjoin_np(thread, NULL, &until));
}

static IN_STACKS void waits_for_end_by_clock(pthread_t thread)
{
    struct timespec until = after(CLOCK_MONOTONIC, 600000 * MS);
    about(&joiner_waits);
    MEASURED("join", 0, leaver, pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until));
}

static void joins(void)
{
    waits_for_end(start(leaves_late, NULL));
    waits_for_end_in_time(start(leaves_late, NULL));
    waits_for_end_by_clock(start(leaves_late, NULL));
}

/* MARK: Time limits: no release */

static void *stays(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

#define LIMITED(name, kind, object, ...)                                                           \
    static IN_STACKS int limited_##name(void)                                                      \
    {                                                                                              \
        int64_t until = now() + 15 * MS;                                                           \
        struct timespec real = after(CLOCK_REALTIME, 15 * MS);                                     \
        struct timespec mono = after(CLOCK_MONOTONIC, 15 * MS);                                    \
        int status;                                                                                \
        (void)real, (void)mono;                                                                    \
        status = MEASURED(kind, object, nobody_before(until), __VA_ARGS__);                        \
        return status == -1 ? errno : status;                                                      \
    }

static pthread_t stayer;

LIMITED(mutex_timed, "mutex", &first, pthread_mutex_timedlock(&first, &real))
LIMITED(mutex_clock, "mutex", &first, pthread_mutex_clocklock(&first, CLOCK_MONOTONIC, &mono))
LIMITED(read_timed, "rwlock to read", &table, pthread_rwlock_timedrdlock(&table, &real))
LIMITED(read_clock, "rwlock to read", &table,
        pthread_rwlock_clockrdlock(&table, CLOCK_MONOTONIC, &mono))
LIMITED(write_timed, "rwlock to write", &table, pthread_rwlock_timedwrlock(&table, &real))
LIMITED(write_clock, "rwlock to write", &table,
        pthread_rwlock_clockwrlock(&table, CLOCK_MONOTONIC, &mono))
LIMITED(cond_timed, "condition", &storm, pthread_cond_timedwait(&storm, &storm_lock, &real))
LIMITED(cond_clock, "condition", &storm,
        pthread_cond_clockwait(&storm, &storm_lock, CLOCK_MONOTONIC, &mono))
LIMITED(sem_timed, "semaphore", &tickets, sem_timedwait(&tickets, &real))
LIMITED(sem_clock, "semaphore", &tickets, sem_clockwait(&tickets, CLOCK_MONOTONIC, &mono))
LIMITED(join_timed, "join", 0, pthread_timedjoin_np(stayer, NULL, &real))
LIMITED(join_clock, "join", 0, pthread_clockjoin_np(stayer, NULL, CLOCK_MONOTONIC, &mono))

static void *all_limited(void *wrong)
{
    static int (*const all[])(void) = {
        limited_mutex_timed, limited_mutex_clock, limited_read_timed, limited_read_clock,
        limited_write_timed, limited_write_clock, limited_cond_timed, limited_cond_clock,
        limited_sem_timed,   limited_sem_clock,   limited_join_timed, limited_join_clock,
    };
    pthread_mutex_lock(&storm_lock);
    for (size_t i = 0; i < COUNT(all); i++)
        *(int *)wrong += all[i]() != ETIMEDOUT;
    pthread_mutex_unlock(&storm_lock);
    return NULL;
}

static void time_limits(void)
{
    pthread_t thread;
    int wrong = 0;
    sem_init(&tickets, 0, 0);
    pthread_mutex_lock(&first);
    pthread_rwlock_wrlock(&table);
    stayer = start(stays, &first);
    thread = start(all_limited, &wrong);
    pthread_join(thread, NULL);
    pthread_mutex_unlock(&first);
    pthread_join(stayer, NULL);
    if (wrong) {
        fprintf(stderr, "%d calls returned something else than ETIMEDOUT\n", wrong);
        exit(99);
    }
}

/* MARK: Many threads */

static about_to_wait crowd_waits[2000];

static IN_STACKS void waits_in_crowd(int number)
{
    about(&crowd_waits[number]);
    MEASURED("semaphore", &tickets, ticket_waker, sem_wait(&tickets));
}

static void *crowd_thread(void *number)
{
    waits_in_crowd((int)(intptr_t)number);
    return NULL;
}

static IN_STACKS void lets_crowd_go(void)
{
    LETS_GO(ticket_waker, for (size_t i = 0; i < COUNT(crowd_waits); i++) sem_post(&tickets));
}

static void crowd(void)
{
    static pthread_t threads[COUNT(crowd_waits)];
    pthread_attr_t small;
    sem_init(&tickets, 0, 0);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    for (size_t i = 0; i < COUNT(threads); i++) {
        if (pthread_create(&threads[i], &small, crowd_thread, (void *)(uintptr_t)i) != 0)
            exit(99);
    }
    /* A thread that arrives after its ticket does not wait, and has no waker. */
    for (size_t i = 0; i < COUNT(threads); i++)
        until_it_waits(&crowd_waits[i]);
    lets_crowd_go();
    join_all(threads, COUNT(threads));
}

static void *short_life(void *count)
{
    atomic_fetch_add((atomic_int *)count, 1);
    return NULL;
}

static void short_lives(void)
{
    static atomic_int lived;
    pthread_t threads[20];
    for (int i = 0; i < 500; i++) {
        for (size_t j = 0; j < COUNT(threads); j++)
            threads[j] = start(short_life, &lived);
        join_all(threads, COUNT(threads));
    }
    if (lived != 10000)
        exit(99);
}

/* MARK: Ready but not running: other threads have the CPU */

static atomic_bool busy = true;

static void *spins(void *none)
{
    while (busy)
        ;
    return none;
}

static void preempted(void)
{
    static struct lane lane = {.mutex = PTHREAD_MUTEX_INITIALIZER, .hold_ns = 10 * MS};
    pthread_t threads[3];
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    for (size_t i = 0; i < COUNT(threads); i++)
        threads[i] = start(spins, NULL);
    for (int i = 0; i < 10; i++)
        holds_alpha(&lane);
    busy = false;
    join_all(threads, COUNT(threads));
}

/* MARK: A deadlock: its waits never end, and the program must be killed */

static IN_STACKS void deadlocks_first(void)
{
    about(&a_waits);
    pthread_mutex_lock(&second);
}

static IN_STACKS void deadlocks_second(void)
{
    about(&b_waits);
    pthread_mutex_lock(&first);
}

static pthread_barrier_t all_there;

static void *dead_a(void *none)
{
    pthread_mutex_lock(&first);
    pthread_barrier_wait(&all_there);
    deadlocks_first();
    return none;
}

static void *dead_b(void *none)
{
    pthread_mutex_lock(&second);
    pthread_barrier_wait(&all_there);
    deadlocks_second();
    return none;
}

static void deadlock(void)
{
    pthread_t a, b;
    int tids[2];
    pthread_barrier_init(&all_there, NULL, 2);
    a = start(dead_a, NULL);
    b = start(dead_b, NULL);
    while (!(tids[0] = a_waits) || !(tids[1] = b_waits))
        sleep_ns(MS);
    until_it_waits(&a_waits);
    until_it_waits(&b_waits);
    printf("{\"tid\":%d,\"in\":\"deadlocks_first\",\"object\":%lu}\n", tids[0],
           (unsigned long)(uintptr_t)&second);
    printf("{\"tid\":%d,\"in\":\"deadlocks_second\",\"object\":%lu}\n", tids[1],
           (unsigned long)(uintptr_t)&first);
    fflush(stdout);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

/* MARK: Stuck: three threads wait forever, each three calls deep; main runs until it is killed */

static int never[2];
static pthread_cond_t nobody = PTHREAD_COND_INITIALIZER;
static about_to_wait stuck[3];

static IN_STACKS void stuck_in_read(void)
{
    char byte;
    about(&stuck[0]);
    while (read(never[0], &byte, 1) != 1)
        ;
}

static IN_STACKS void stuck_in_lock(void)
{
    about(&stuck[1]);
    pthread_mutex_lock(&first);
}

static IN_STACKS void stuck_in_condition(void)
{
    pthread_mutex_lock(&second);
    about(&stuck[2]);
    while (pthread_cond_wait(&nobody, &second) == 0)
        ;
}

/* FUNCTION_deeper calls FUNCTION; the start routine calls it. */
#define DEEPER(function)                                                                           \
    static IN_STACKS void function##_deeper(void)                                                  \
    {                                                                                              \
        function();                                                                                \
    }                                                                                              \
    static void *function##_thread(void *none)                                                     \
    {                                                                                              \
        function##_deeper();                                                                       \
        return none;                                                                               \
    }

DEEPER(stuck_in_read)
DEEPER(stuck_in_lock)
DEEPER(stuck_in_condition)

static void stuck_for_ever(void)
{
    if (pipe(never) != 0)
        exit(99);
    pthread_mutex_lock(&first);
    start(stuck_in_read_thread, NULL);
    start(stuck_in_lock_thread, NULL);
    start(stuck_in_condition_thread, NULL);
    for (size_t i = 0; i < COUNT(stuck); i++)
        until_it_waits(&stuck[i]);
    printf("stuck\n");
    fflush(stdout);
    for (;;)
        sleep_ns(5 * MS);
}

/* Makes the memory readable only by root. */
static void stuck_in_secret(void)
{
    prctl(PR_SET_DUMPABLE, 0);
    stuck_for_ever();
}

/* MARK: Scenarios */

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"mutexes", mutexes},
    {"rounds", rounds},
    {"chain", chain},
    {"queue", queue},
    {"convoy", convoy},
    {"readers", readers},
    {"producer-consumer", producer_consumer},
    {"pool", pool},
    {"storms", storms},
    {"mutex-again", mutex_again},
    {"semaphores", semaphores},
    {"barriers", barriers},
    {"once", once},
    {"joins", joins},
    {"time-limits", time_limits},
    {"crowd", crowd},
    {"short-lives", short_lives},
    {"preempted", preempted},
    {"deadlock", deadlock},
    {"stuck", stuck_for_ever},
    {"stuck-in-secret", stuck_in_secret},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < COUNT(scenarios); i++) {
        if (strcmp(scenarios[i].name, argv[1]) == 0) {
            scenarios[i].run();
            print_answers();
            return 0;
        }
    }
    fprintf(stderr, "usage: answers SCENARIO\n");
    return 2;
}
