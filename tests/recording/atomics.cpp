// C++20's waits, which go through syscall(SYS_futex): atomics CASE. See wakers.c.
#include "answers.h"

#include <atomic>
#include <barrier>
#include <cstring>
#include <latch>
#include <semaphore>
#include <thread>

static std::atomic<int> number;
static std::atomic_flag flag = ATOMIC_FLAG_INIT;
static std::atomic<long long> wide;
static std::barrier gate(2);
static std::latch latch(1);
static std::counting_semaphore<8> semaphore(0);
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
    else if (std::strcmp(how, "latch") == 0)
        latch.wait();
    else
        semaphore.acquire();
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
    } else if (std::strcmp(how, "latch") == 0) {
        latch.count_down();
    } else {
        semaphore.release();
    }
    asm volatile("" ::: "memory");
}

int main(int, char **argv)
{
    how = argv[1];
    std::thread waiter(wait_here);
    until_it_waits(&waiter_is);
    wake_here();
    waiter.join();
    return 0;
}
