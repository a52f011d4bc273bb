/*
 * Waits through the C++ library, each in a function that must be the place in the trace. Nothing is
 * inlined into these functions: the trace shows the program's own frame.
 */
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include <pthread.h>
#include <unistd.h>

#include "asleep.h"

namespace
{

std::mutex results_mu;
std::condition_variable ready;
bool is_ready;
pid_t waiter_tid; /* atomic */

template <class Unit> [[gnu::noinline]] void sleep_a_while(Unit time)
{
    std::this_thread::sleep_for(time);
}

[[gnu::noinline]] void take_turn(std::promise<pid_t> &there)
{
    there.set_value(gettid());
    std::lock_guard<std::mutex> lock(results_mu);
}

[[gnu::noinline]] void wait_ready()
{
    __atomic_store_n(&waiter_tid, gettid(), __ATOMIC_RELEASE);
    std::unique_lock<std::mutex> lock(results_mu);
    ready.wait(lock, [] { return is_ready; });
}

struct Sleeper {
    std::vector<int> of;
    void operator()(int ms) const
    {
        sleep_a_while(std::chrono::milliseconds(ms));
    }
};

/* Threads that never wait: the recorder can learn what they run only from their start arguments. */
volatile int counted;

void count_to(int limit)
{
    for (int i = 0; i < limit; i++)
        counted = i;
}

struct Counter {
    int limit;
    void count()
    {
        count_to(limit);
    }
};

void count_named(int limit)
{
    pthread_setname_np(pthread_self(), "its own name");
    count_to(limit);
}

void run_both(void (*first)(), int limit)
{
    first();
    count_to(limit);
}

void nothing()
{
}

/* Leaves pointers to a function in freed memory, which the objects of threads will reuse. */
[[gnu::noinline]] void leave_pointers()
{
    void *volatile blocks[6];
    for (auto &block : blocks)
        block = std::malloc(24);
    for (auto &block : blocks) {
        for (int i = 0; i < 3; i++)
            static_cast<void (*volatile *)(int)>(block)[i] = count_to;
        std::free(block);
    }
}

} // namespace

int main()
{
    std::promise<pid_t> there;
    std::thread waiter(wait_ready), sleeper(Sleeper{}, 30), turn;
    until_asleep(&waiter_tid);
    {
        std::lock_guard<std::mutex> lock(results_mu);
        turn = std::thread(take_turn, std::ref(there));
        pid_t tid = there.get_future().get();
        until_asleep(&tid);
        sleep_a_while(std::chrono::milliseconds(40));
        is_ready = true;
    }
    ready.notify_all();
    Counter counter{1000};
    leave_pointers();
    std::thread plain(nothing), counts(count_to, 1000), member(&Counter::count, &counter),
        named(count_named, 1000), both(run_both, nothing, 1000);
    for (std::thread *thread : {&waiter, &sleeper, &turn, &plain, &counts, &member, &named, &both})
        thread->join();
}
