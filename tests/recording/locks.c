/*
 * Three threads, each waiting for the next: a chain with a known answer. With "often": a lock that
 * is held for a long time, first while another lock is taken as often as possible, then while none
 * is. With "readers": three threads that hold one lock for reading at the same time. With "late": a
 * reader that is woken by a writer, and continues after another reader has released the lock. With
 * "kept": mutexes that another thread tries to unlock in vain. With "spin": a spin lock; "spins" is
 * how long its waiter has spun, at least by its CPU clock. With "baton": a mutex that one thread
 * takes and another releases while a third waits. With "lane": a lock held for reading that another
 * thread releases during a long wait.
 *
 * Prints how long each lock was held at least and at most, in ns: "NAME BEGIN LEAST MOST". BEGIN is
 * "coarse" if the recorder's library took the start of the hold from the recorder's coarse clock,
 * else "exact", or "either" if it may be both. "chain" is the wait of all threads of the chain
 * together.
 */
#include <errno.h>
#include <semaphore.h>
#include <signal.h>

#include "answers.h"

#include "shm/shm.h"

static pthread_mutex_t orders_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t stock_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t prices_lock = PTHREAD_RWLOCK_INITIALIZER;
static about_to_wait clerk_waits, packer_waits, reader_waits;
static pthread_t packer_thread;

/* Yields instead of sleeping, which would be a wait: the last screen shows only the three
 * longest. */
static void until_asleep(about_to_wait *who)
{
    while (!it_waits(who))
        sched_yield();
}

static void hold_told(const char *name, int64_t before, int64_t got, int64_t releases,
                      int64_t released)
{
    printf("%s exact %ld %ld\n", name, (long)(releases - got), (long)(released - before));
}

static IN_STACKS void take_orders(void)
{
    about(&clerk_waits);
    pthread_mutex_lock(&orders_mu);
    pthread_mutex_unlock(&orders_mu);
}

static void *clerk(void *unused)
{
    (void)unused;
    take_orders();
    return NULL;
}

/* Holds the orders lock, and waits for the stock lock. */
static IN_STACKS void pack(void)
{
    pthread_t thread;
    int64_t before = now(), got, releases;
    pthread_mutex_lock(&orders_mu);
    got = now();
    thread = start(clerk, NULL);
    until_asleep(&clerk_waits);
    about(&packer_waits);
    pthread_mutex_lock(&stock_mu);
    pthread_mutex_unlock(&stock_mu);
    releases = now();
    pthread_mutex_unlock(&orders_mu);
    hold_told("orders_mu", before, got, releases, now());
    pthread_join(thread, NULL);
}

static void *packer(void *unused)
{
    (void)unused;
    pack();
    return NULL;
}

static IN_STACKS void read_prices(void)
{
    about(&reader_waits);
    pthread_rwlock_rdlock(&prices_lock);
    pthread_rwlock_unlock(&prices_lock);
}

static void *reader(void *unused)
{
    (void)unused;
    read_prices();
    return NULL;
}

/* Holds the stock lock until both others wait. */
static IN_STACKS void count_stock(void)
{
    int64_t before = now(), got, all_wait, releases;
    pthread_mutex_lock(&stock_mu);
    got = now();
    packer_thread = start(packer, NULL);
    until_asleep(&packer_waits);
    all_wait = now();
    sleep_ns(20 * MS);
    releases = now();
    pthread_mutex_unlock(&stock_mu);
    hold_told("stock_mu", before, got, releases, now());
    hold_told("chain", 0, all_wait, releases, INT64_MAX);
}

static IN_STACKS void write_prices(void)
{
    pthread_t thread;
    pthread_rwlock_wrlock(&prices_lock);
    thread = start(reader, NULL);
    until_asleep(&reader_waits);
    sleep_ns(5 * MS);
    pthread_rwlock_unlock(&prices_lock);
    pthread_join(thread, NULL);
}

/* MARK: Several readers */

/* Each reader holds the lock when the next one takes it, and releases it when all hold it and a
 * writer waits. */
static pthread_rwlock_t menu_lock = PTHREAD_RWLOCK_INITIALIZER;
static about_to_wait writer_waits;
static sem_t turn[4];

#define READS_MENU(name, index, ms)                                                                \
    static IN_STACKS void name(void)                                                               \
    {                                                                                              \
        int64_t before, got, releases;                                                             \
        sem_wait(&turn[index]);                                                                    \
        before = now();                                                                            \
        pthread_rwlock_rdlock(&menu_lock);                                                         \
        got = now();                                                                               \
        sem_post(&turn[(index) + 1]);                                                              \
        while (!it_waits(&writer_waits))                                                           \
            sleep_ns(MS / 5);                                                                      \
        sleep_ns((ms)*MS);                                                                         \
        releases = now();                                                                          \
        pthread_rwlock_unlock(&menu_lock);                                                         \
        hold_told(#name, before, got, releases, now());                                            \
    }                                                                                              \
    static void *run_##name(void *unused)                                                          \
    {                                                                                              \
        name();                                                                                    \
        return unused;                                                                             \
    }

READS_MENU(reads_long, 0, 30)
READS_MENU(reads_short, 1, 10)
READS_MENU(reads_middle, 2, 20)

static IN_STACKS void writes_menu(void)
{
    sem_wait(&turn[3]);
    about(&writer_waits);
    pthread_rwlock_wrlock(&menu_lock);
    pthread_rwlock_unlock(&menu_lock);
}

static int readers(void)
{
    pthread_t threads[] = {start(run_reads_long, NULL), start(run_reads_short, NULL),
                           start(run_reads_middle, NULL)};
    sem_post(&turn[0]);
    writes_menu();
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* MARK: A late reader */

static pthread_rwlock_t sign_lock = PTHREAD_RWLOCK_INITIALIZER;
static about_to_wait early_waits, late_waits;
static atomic_bool is_late, may_go_on;

/* Delays the thread without a wait. */
static void be_late(int number)
{
    (void)number;
    atomic_store(&is_late, true);
    while (!atomic_load(&may_go_on))
        ;
}

static IN_STACKS void reads_sign(about_to_wait *who)
{
    about(who);
    pthread_rwlock_rdlock(&sign_lock);
    pthread_rwlock_unlock(&sign_lock);
}

static void *reads_early(void *unused)
{
    reads_sign(&early_waits);
    return unused;
}

static IN_STACKS void reads_late(void)
{
    reads_sign(&late_waits);
}

static void *run_reads_late(void *unused)
{
    reads_late();
    return unused;
}

static IN_STACKS void writes_sign(void)
{
    pthread_rwlock_unlock(&sign_lock);
}

static int late(void)
{
    pthread_t threads[2];
    (void)signal(SIGUSR1, be_late);
    pthread_rwlock_wrlock(&sign_lock);
    threads[0] = start(reads_early, NULL);
    threads[1] = start(run_reads_late, NULL);
    until_asleep(&early_waits);
    until_asleep(&late_waits);
    pthread_kill(threads[1], SIGUSR1);
    while (!atomic_load(&is_late))
        sched_yield();
    writes_sign();
    pthread_join(threads[0], NULL);
    atomic_store(&may_go_on, true);
    pthread_join(threads[1], NULL);
    return 0;
}

/* MARK: Many locks */

#define HOLDS 10

/* The recorder's library keeps one hold for all locks of a slot: a frequently taken lock evicts the
 * hold of another. */
static pthread_mutex_t counters[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t ledger_mu = PTHREAD_MUTEX_INITIALIZER;
static bool enough;
static const struct shm_area *area;

static void find_area(void)
{
    unsigned long begin;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !area && fgets(line, sizeof line, maps)) {
        if (strstr(line, "/memfd:trail (") && sscanf(line, "%lx-", &begin) == 1)
            area = (const struct shm_area *)begin;
    }
    if (maps)
        fclose(maps);
    if (!area)
        exit(99);
}

/* The clock used for times in the shared area. */
static uint64_t ticks(void)
{
#if defined(__x86_64__)
    if (area->header.has_counter)
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (area->header.has_counter) {
        uint64_t value;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value)::"memory");
        return value;
    }
#endif
    return (uint64_t)now();
}

/* The coarse clock advances once per millisecond. */
static uint64_t ticks_of_ms(uint64_t ms)
{
    return ms * area->header.step_ticks;
}

static long ns_of_ticks(uint64_t span)
{
    return (long)((double)span * MS / (double)area->header.step_ticks);
}

/* Returns 0 if the clock is not running. */
static uint64_t coarse_clock(void)
{
    return __atomic_load_n(&area->header.coarse, __ATOMIC_ACQUIRE);
}

static void *count_often(void *counter)
{
    while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
        pthread_mutex_lock(counter);
        pthread_mutex_unlock(counter);
    }
    return NULL;
}

/*
 * Holds the ledger lock for 20 ms by both clocks. A hold that begins by the coarse clock starts
 * half a step after the time it shows. Returns whether the coarse clock was running.
 */
static IN_STACKS bool keep_ledger(void)
{
    uint64_t half = area->header.step_ticks / 2, coarse[2], begin[2], end[2], shown;
    const char *kind;
    coarse[0] = coarse_clock();
    begin[0] = ticks();
    pthread_mutex_lock(&ledger_mu);
    begin[1] = ticks();
    coarse[1] = coarse_clock();
    do {
        sleep_ns(MS);
        shown = coarse_clock();
    } while (ticks() < begin[1] + ticks_of_ms(20) || (shown && shown < begin[1] + ticks_of_ms(20)));
    end[0] = ticks();
    pthread_mutex_unlock(&ledger_mu);
    end[1] = ticks();
    kind = !coarse[0] != !coarse[1] ? "either" : coarse[0] ? "coarse" : "exact";
    for (int i = 0; i < 2 && coarse[0] && coarse[1]; i++)
        begin[i] = coarse[i] + half;
    printf("ledger_mu %s %ld %ld\n", kind, ns_of_ticks(end[0] - begin[1]),
           ns_of_ticks(end[1] - begin[0]));
    return coarse[0] && coarse[1];
}

static int often(void)
{
    pthread_mutex_t *counter = counters;
    pthread_t thread;
    find_area();
    counter += shm_object_slot((uintptr_t)counter) == shm_object_slot((uintptr_t)&ledger_mu);
    thread = start(count_often, counter);
    for (int i = 0; i < HOLDS;) {
        while (!coarse_clock())
            sleep_ns(MS);
        i += keep_ledger();
    }
    __atomic_store_n(&enough, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    while (coarse_clock())
        sleep_ns(MS);
    for (int i = 0; i < HOLDS; i++)
        (void)keep_ledger();
    return 0;
}

/* MARK: Unlocked in vain */

static pthread_mutex_t checked, nested, robust, inheriting;
static about_to_wait keeper_is_awaited;
static sem_t is_kept, is_over;

static const struct kept {
    const char *name;
    pthread_mutex_t *mutex;
    int type, robustness, protocol;
} all_kept[] = {
    {"checked", &checked, PTHREAD_MUTEX_ERRORCHECK, 0, 0},
    {"nested", &nested, PTHREAD_MUTEX_RECURSIVE, 0, 0},
    {"robust", &robust, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, 0},
    {"inheriting", &inheriting, PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_INHERIT},
};

static IN_STACKS void keeps(const struct kept *kept)
{
    int64_t before = now(), got, releases;
    pthread_mutex_lock(kept->mutex);
    got = now();
    if (kept->type == PTHREAD_MUTEX_RECURSIVE) {
        pthread_mutex_lock(kept->mutex);
        pthread_mutex_unlock(kept->mutex);
    }
    sem_post(&is_kept);
    while (sem_wait(&is_over) != 0)
        ;
    releases = now();
    pthread_mutex_unlock(kept->mutex);
    hold_told(kept->name, before, got, releases, now());
}

static void *keeper(void *kept)
{
    keeps(kept);
    return NULL;
}

static void *awaits_keeper(void *kept)
{
    about(&keeper_is_awaited);
    pthread_mutex_lock(((const struct kept *)kept)->mutex);
    pthread_mutex_unlock(((const struct kept *)kept)->mutex);
    return NULL;
}

static void unlock_in_vain(const struct kept *kept)
{
    pthread_mutexattr_t how;
    pthread_t threads[2];
    pthread_mutexattr_init(&how);
    pthread_mutexattr_settype(&how, kept->type);
    pthread_mutexattr_setrobust(&how, kept->robustness);
    pthread_mutexattr_setprotocol(&how, kept->protocol);
    pthread_mutex_init(kept->mutex, &how);
    threads[0] = start(keeper, (void *)(uintptr_t)kept);
    while (sem_wait(&is_kept) != 0)
        ;
    threads[1] = start(awaits_keeper, (void *)(uintptr_t)kept);
    until_it_waits(&keeper_is_awaited);
    if (pthread_mutex_unlock(kept->mutex) != EPERM)
        exit(1);
    sleep_ns(2 * MS);
    sem_post(&is_over);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

static int kept(void)
{
    sem_init(&is_kept, 0, 0);
    sem_init(&is_over, 0, 0);
    for (size_t i = 0; i < sizeof all_kept / sizeof *all_kept; i++)
        unlock_in_vain(&all_kept[i]);
    return 0;
}

/* MARK: A spin lock */

#define SPUN_NS (10 * MS)

static pthread_spinlock_t till_lock;
static atomic_long spins_since; /* by the thread's CPU clock */

static int64_t clock_of(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static IN_STACKS void spins_for_till(void)
{
    int64_t before = now();
    atomic_store(&spins_since, clock_of(CLOCK_THREAD_CPUTIME_ID));
    pthread_spin_lock(&till_lock);
    pthread_spin_unlock(&till_lock);
    printf("spins exact %ld %ld\n", SPUN_NS, (long)(now() - before));
}

static void *run_spins(void *unused)
{
    spins_for_till();
    return unused;
}

static IN_STACKS void holds_till(void)
{
    int64_t before = now(), got, releases, since;
    pthread_t thread;
    clockid_t clock;
    pthread_spin_lock(&till_lock);
    got = now();
    thread = start(run_spins, NULL);
    pthread_getcpuclockid(thread, &clock);
    do
        since = atomic_load(&spins_since);
    while (since == 0 || clock_of(clock) < since + SPUN_NS);
    releases = now();
    pthread_spin_unlock(&till_lock);
    hold_told("till_lock", before, got, releases, now());
    pthread_join(thread, NULL);
}

static int spin(void)
{
    pthread_spin_init(&till_lock, PTHREAD_PROCESS_PRIVATE);
    holds_till();
    return 0;
}

/* MARK: Released by another thread */

static pthread_mutex_t baton_mu = PTHREAD_MUTEX_INITIALIZER;
static about_to_wait finisher_waits;
static sem_t baton_taken, baton_back;

static IN_STACKS void takes_baton(void)
{
    pthread_mutex_lock(&baton_mu);
    sem_post(&baton_taken);
    while (sem_wait(&baton_back) != 0)
        ;
}

static void *starter(void *unused)
{
    takes_baton();
    return unused;
}

static IN_STACKS void awaits_baton(void)
{
    about(&finisher_waits);
    pthread_mutex_lock(&baton_mu);
    pthread_mutex_unlock(&baton_mu);
}

static void *finisher(void *unused)
{
    awaits_baton();
    return unused;
}

static IN_STACKS void drops_baton(void)
{
    pthread_mutex_unlock(&baton_mu);
}

static int baton(void)
{
    pthread_t threads[2];
    sem_init(&baton_taken, 0, 0);
    sem_init(&baton_back, 0, 0);
    threads[0] = start(starter, NULL);
    while (sem_wait(&baton_taken) != 0)
        ;
    threads[1] = start(finisher, NULL);
    until_it_waits(&finisher_waits);
    sleep_ns(2 * MS);
    drops_baton();
    pthread_join(threads[1], NULL);
    sem_post(&baton_back);
    pthread_join(threads[0], NULL);
    return 0;
}

/* MARK: Given up */

static pthread_rwlock_t lane_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t bib_mu = PTHREAD_MUTEX_INITIALIZER;
static sem_t lane_given;

/* Another thread gives up the lane, but not the bib, while this one waits. */
static void *runs_in_lane(void *unused)
{
    pthread_mutex_lock(&bib_mu);
    pthread_rwlock_rdlock(&lane_lock);
    sem_post(&baton_taken);
    while (sem_wait(&lane_given) != 0)
        ;
    while (sem_wait(&baton_back) != 0)
        ;
    pthread_mutex_unlock(&bib_mu);
    return unused;
}

static int lane(void)
{
    pthread_t thread;
    sem_init(&baton_taken, 0, 0);
    sem_init(&baton_back, 0, 0);
    sem_init(&lane_given, 0, 0);
    thread = start(runs_in_lane, NULL);
    while (sem_wait(&baton_taken) != 0)
        ;
    pthread_rwlock_unlock(&lane_lock);
    sem_post(&lane_given);
    sleep_ns(1000 * MS);
    sem_post(&baton_back);
    pthread_join(thread, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "lane") == 0)
        return lane();
    if (argc > 1 && strcmp(argv[1], "baton") == 0)
        return baton();
    if (argc > 1 && strcmp(argv[1], "spin") == 0)
        return spin();
    if (argc > 1 && strcmp(argv[1], "kept") == 0)
        return kept();
    if (argc > 1 && strcmp(argv[1], "often") == 0)
        return often();
    if (argc > 1 && strcmp(argv[1], "readers") == 0)
        return readers();
    if (argc > 1 && strcmp(argv[1], "late") == 0)
        return late();
    count_stock();
    pthread_join(packer_thread, NULL);
    write_prices();
    return 0;
}
