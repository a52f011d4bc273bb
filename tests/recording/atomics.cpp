// C++20's waits, most of which go through syscall(SYS_futex). Like wakers.c.
// usage: atomics CASE [hang]     with "hang" nothing ends the wait
#include "answers.h"

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstring>
#include <future>
#include <latch>
#include <semaphore>
#include <shared_mutex>
#include <thread>

static std::atomic<int> number;
static std::atomic_flag flag = ATOMIC_FLAG_INIT;
static std::atomic<long long> wide;
static std::barrier gate(2);
static auto completion = []() noexcept {};
static std::barrier<decltype(completion)> with_lambda(2, completion);
static std::latch latch(1);
static std::counting_semaphore<8> semaphore(0);
static std::promise<int> promise;
static std::shared_mutex catalog;
static std::condition_variable_any any;
static bool any_ready;
static std::mutex lost_mutex;
static std::condition_variable lost;
static const char *how;
static about_to_wait waiter_is;

__attribute__((noinline)) static void wait_here()
{
    about(&waiter_is);
    if (std::strcmp(how, "atomic") == 0)
        number.wait(0);
    else if (std::strcmp(how, "flag") == 0)
        flag.wait(false);
    else if (std::strcmp(how, "wide") == 0)
        wide.wait(0);
    else if (std::strcmp(how, "barrier") == 0)
        gate.arrive_and_wait();
    else if (std::strcmp(how, "completion") == 0)
        with_lambda.arrive_and_wait();
    else if (std::strcmp(how, "latch") == 0)
        latch.wait();
    else if (std::strcmp(how, "future") == 0)
        promise.get_future().get();
    else if (std::strcmp(how, "shared") == 0)
        std::shared_lock reads(catalog);
    else if (std::strcmp(how, "lost") == 0) {
        std::unique_lock lock(lost_mutex);
        lost.wait(lock);
    } else if (std::strcmp(how, "any") == 0) {
        std::unique_lock lock(catalog);
        any.wait(lock, [] { return any_ready; });
    } else
        semaphore.acquire();
    asm volatile("" ::: "memory");
}

__attribute__((noinline)) static void signal_too_early()
{
    lost.notify_one();
    asm volatile("" ::: "memory");
}

__attribute__((noinline)) static void wake_here()
{
    fprintf(stderr, "wakes %d %ld\n", me(), (long)now());
    if (std::strcmp(how, "atomic") == 0) {
        number = 1;
        number.notify_one();
    } else if (std::strcmp(how, "flag") == 0) {
        flag.test_and_set();
        flag.notify_one();
    } else if (std::strcmp(how, "wide") == 0) {
        wide = 1;
        wide.notify_one();
    } else if (std::strcmp(how, "barrier") == 0) {
        gate.arrive_and_wait();
    } else if (std::strcmp(how, "completion") == 0) {
        with_lambda.arrive_and_wait();
    } else if (std::strcmp(how, "latch") == 0) {
        latch.count_down();
    } else if (std::strcmp(how, "future") == 0) {
        promise.set_value(1);
    } else if (std::strcmp(how, "shared") == 0) {
        catalog.unlock();
    } else if (std::strcmp(how, "any") == 0) {
        std::lock_guard lock(catalog);
        any_ready = true;
        any.notify_one();
    } else {
        semaphore.release();
    }
    asm volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
    how = argv[1];
    if (std::strcmp(how, "shared") == 0)
        catalog.lock();
    if (std::strcmp(how, "lost") == 0)
        signal_too_early();
    std::jthread waiter(wait_here);
    until_it_waits(&waiter_is);
    if (argc > 2)
        return how[0] == 'x';
    wake_here();
    return 0;
}
