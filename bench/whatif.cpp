/*
 * Programs in C++ for bench/whatif: each as it is, and with a change that trail whatif can predict.
 */
#include <condition_variable>
#include <mutex>
#include <queue>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "whatif.h"

static const int ROUNDS = 40;

static void run_threads(const std::vector<void (*)()> &functions)
{
    std::vector<std::thread> threads;
    for (auto function : functions)
        threads.emplace_back(function);
    for (auto &thread : threads)
        thread.join();
}

/* MARK: Locks */

static std::mutex cache_mu;

static void updates()
{
    for (int i = 0; i < ROUNDS; i++) {
        {
            std::lock_guard<std::mutex> guard(cache_mu);
            burn(changed ? 2000 : 4000);
        }
        burn(1000);
    }
}

/* --hold=cache_mu=0.5x: held over work, not over waits */
static void mutex_halved()
{
    run_threads({updates, updates});
}

static std::shared_mutex config_mu;

static void reloads()
{
    for (int i = 0; i < ROUNDS; i++) {
        {
            std::unique_lock<std::shared_mutex> guard(config_mu);
            burn(changed ? 3000 : 6000);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

static void looks_up()
{
    for (int i = 0; i < ROUNDS; i++) {
        {
            std::shared_lock<std::shared_mutex> guard(config_mu);
            burn(100);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

/* --hold=config_mu=0.5x */
static void shared_halved()
{
    run_threads({reloads, looks_up, looks_up});
}

/* MARK: Conditions */

static std::mutex state_mu;
static std::condition_variable filled, freed, arrived;
static std::queue<int> items;
static const size_t MOST_ITEMS = 4;

static void make_items()
{
    for (int i = 0; i < ROUNDS; i++) {
        burn(1500);
        std::unique_lock<std::mutex> lock(state_mu);
        freed.wait(lock, [] { return items.size() < MOST_ITEMS; });
        items.push(i);
        filled.notify_one();
    }
}

static void use_items()
{
    for (int i = 0; i < ROUNDS; i++) {
        {
            std::unique_lock<std::mutex> lock(state_mu);
            filled.wait(lock, [] { return !items.empty(); });
            items.pop();
            freed.notify_one();
        }
        burn(changed ? 3000 : 6000);
    }
}

/* --faster=use_items=2x */
static void bounded_queue()
{
    run_threads({make_items, use_items});
}

/* Each waits for a peer, as a query of a database does. */
static void answers()
{
    for (;;) {
        {
            std::unique_lock<std::mutex> lock(state_mu);
            filled.wait(lock, [] { return !items.empty(); });
            int item = items.front();
            items.pop();
            freed.notify_one();
            if (item < 0)
                return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(6));
        burn(200);
    }
}

static void asks(int workers)
{
    for (int i = 0; i < 3 * ROUNDS + workers; i++) {
        std::unique_lock<std::mutex> lock(state_mu);
        freed.wait(lock, [] { return items.size() < MOST_ITEMS; });
        items.push(i < 3 * ROUNDS ? i : -1);
        filled.notify_one();
    }
}

/* --pool=answers=6 */
static void more_workers()
{
    std::vector<std::thread> workers(changed ? 6 : 2);
    for (std::thread &worker : workers)
        worker = std::thread(answers);
    asks((int)workers.size());
    for (std::thread &worker : workers)
        worker.join();
}

static int waiting, phase;

static void arrive(int threads)
{
    std::unique_lock<std::mutex> lock(state_mu);
    int mine = phase;
    if (++waiting == threads) {
        waiting = 0;
        phase++;
        arrived.notify_all();
    } else {
        arrived.wait(lock, [mine] { return phase != mine; });
    }
}

static void slow_phases()
{
    for (int i = 0; i < ROUNDS; i++) {
        burn(changed ? 3500 : 7000);
        arrive(2);
    }
}

static void quick_phases()
{
    for (int i = 0; i < ROUNDS; i++) {
        burn(5000);
        arrive(2);
    }
}

/* --faster=slow_phases=2x: then the other thread is the slower one */
static void slow_phase()
{
    run_threads({slow_phases, quick_phases});
}

/* MARK: Pool */

static std::mutex jobs_mu;
static std::condition_variable have_jobs;
static std::queue<void (*)()> jobs;
static bool complete;

static void parse()
{
    burn(2000);
}

static void render()
{
    burn(changed ? 4000 : 8000);
}

static bool next_job(void (**job)())
{
    std::unique_lock<std::mutex> lock(jobs_mu);
    have_jobs.wait(lock, [] { return complete || !jobs.empty(); });
    if (jobs.empty())
        return false;
    *job = jobs.front();
    jobs.pop();
    return true;
}

static void works()
{
    void (*job)();
    while (next_job(&job))
        job();
}

/* --faster=render=2x: one of two functions of a pool's jobs */
static void pool()
{
    std::thread one(works), two(works);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        std::lock_guard<std::mutex> guard(jobs_mu);
        jobs.push(i % 2 ? render : parse);
        have_jobs.notify_one();
    }
    {
        std::lock_guard<std::mutex> guard(jobs_mu);
        complete = true;
        have_jobs.notify_all();
    }
    one.join();
    two.join();
}

static const struct pair pairs[] = {
    {"mutex-halved", mutex_halved},
    {"shared-halved", shared_halved},
    {"bounded-queue", bounded_queue},
    {"more-workers", more_workers},
    {"slow-phase", slow_phase},
    {"pool", pool},
};

int main(int argc, char **argv)
{
    return RUN_PAIR(pairs, argc, argv);
}
