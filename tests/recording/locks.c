/*
 * Three threads of which each waits for the next: a chain with a known answer. With the word "often": a lock that is held
 * for long, while another one is taken as often as can be, and then while none is. Prints how long each
 * lock was held at least and at most, by the clock: "NAME LEAST MOST", in ns.
 */
#include "answers.h"

static pthread_mutex_t orders_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t stock_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t prices_lock = PTHREAD_RWLOCK_INITIALIZER;
static about_to_wait clerk_waits, packer_waits, reader_waits;
static pthread_t packer_thread;

static void hold_told(const char *name, int64_t before, int64_t got, int64_t releases,
                      int64_t released)
{
    printf("%s %ld %ld\n", name, (long)(releases - got), (long)(released - before));
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

/* Has the orders, and waits for the stock. */
static IN_STACKS void pack(void)
{
    pthread_t thread;
    int64_t before = now(), got, releases;
    pthread_mutex_lock(&orders_mu);
    got = now();
    thread = start(clerk, NULL);
    until_it_waits(&clerk_waits);
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

/* Has the stock until both others wait. */
static IN_STACKS void count_stock(void)
{
    int64_t before = now(), got, releases;
    pthread_mutex_lock(&stock_mu);
    got = now();
    packer_thread = start(packer, NULL);
    until_it_waits(&packer_waits);
    sleep_ns(20 * MS);
    releases = now();
    pthread_mutex_unlock(&stock_mu);
    hold_told("stock_mu", before, got, releases, now());
}

static IN_STACKS void write_prices(void)
{
    pthread_t thread;
    pthread_rwlock_wrlock(&prices_lock);
    thread = start(reader, NULL);
    until_it_waits(&reader_waits);
    sleep_ns(5 * MS);
    pthread_rwlock_unlock(&prices_lock);
    pthread_join(thread, NULL);
}

/* MARK: Many locks */

#define HOLDS 10

static pthread_mutex_t counter_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t ledger_mu = PTHREAD_MUTEX_INITIALIZER;
static bool enough;

static void *count_often(void *unused)
{
    while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
        pthread_mutex_lock(&counter_mu);
        pthread_mutex_unlock(&counter_mu);
    }
    return unused;
}

static IN_STACKS void keep_ledger(void)
{
    for (int i = 0; i < HOLDS; i++) {
        int64_t before = now(), got, releases;
        pthread_mutex_lock(&ledger_mu);
        got = now();
        sleep_ns(20 * MS);
        releases = now();
        pthread_mutex_unlock(&ledger_mu);
        hold_told("ledger_mu", before, got, releases, now());
        sleep_ns(20 * MS);
    }
}

static int often(void)
{
    pthread_t counter = start(count_often, NULL);
    keep_ledger();
    __atomic_store_n(&enough, true, __ATOMIC_RELAXED);
    pthread_join(counter, NULL);
    keep_ledger();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "often") == 0)
        return often();
    count_stock();
    pthread_join(packer_thread, NULL);
    write_prices();
    return 0;
}
