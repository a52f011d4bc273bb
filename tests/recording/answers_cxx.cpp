/* How the C++ library's locks, conditions, futures and threads appear in a trace: see answers.h. */
#include "answers.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

using namespace std::chrono_literals;

/* MARK: std::mutex */

static std::mutex mutex;
static struct release *waker;
static about_to_wait waiter;

IN_STACKS static void waits_for_mutex()
{
    about(&waiter);
    int64_t begin = now();
    std::lock_guard<std::mutex> lock(mutex);
    tell_end(__func__, "mutex", mutex.native_handle(), begin, waker);
}

IN_STACKS static void holds_mutex()
{
    std::unique_lock<std::mutex> lock(mutex);
    std::thread thread(waits_for_mutex);
    until_it_waits(&waiter);
    sleep_ns(10 * MS);
    LETS_GO(waker, lock.unlock());
    thread.join();
}

/* MARK: std::timed_mutex, std::shared_mutex */

static std::timed_mutex timed;

IN_STACKS static void waits_in_vain()
{
    int64_t begin = now(), until = begin + 15 * MS;
    if (timed.try_lock_for(std::chrono::milliseconds(15)))
        throw std::logic_error("a mutex that is taken was taken");
    tell_end(__func__, "mutex", timed.native_handle(), begin, nobody_before(until));
}

static void time_limit()
{
    std::lock_guard<std::timed_mutex> lock(timed);
    std::thread(waits_in_vain).join();
}

static std::shared_mutex shared;

IN_STACKS static void waits_for_shared()
{
    about(&waiter);
    int64_t begin = now();
    std::shared_lock<std::shared_mutex> lock(shared);
    tell_end(__func__, "rwlock to read", shared.native_handle(), begin, waker);
}

IN_STACKS static void holds_shared()
{
    std::unique_lock<std::shared_mutex> lock(shared);
    std::thread thread(waits_for_shared);
    until_it_waits(&waiter);
    sleep_ns(10 * MS);
    LETS_GO(waker, lock.unlock());
    thread.join();
}

/* MARK: std::condition_variable */

static std::condition_variable condition;
static int happened;

IN_STACKS static void waits_for_condition()
{
    std::unique_lock<std::mutex> lock(mutex);
    about(&waiter);
    int64_t begin = now();
    condition.wait(lock, [] { return happened == 1; });
    tell_end(__func__, "condition", condition.native_handle(), begin, waker);
}

IN_STACKS static void waits_for_condition_in_time()
{
    std::unique_lock<std::mutex> lock(mutex);
    about(&waiter);
    int64_t begin = now();
    condition.wait_for(lock, 600s, [] { return happened == 2; });
    tell_end(__func__, "condition", condition.native_handle(), begin, waker);
}

IN_STACKS static void notifies()
{
    until_it_waits(&waiter);
    sleep_ns(10 * MS);
    std::lock_guard<std::mutex> lock(mutex);
    happened++;
    LETS_GO(waker, condition.notify_one());
}

static void conditions()
{
    std::thread first(waits_for_condition);
    notifies();
    first.join();
    std::thread second(waits_for_condition_in_time);
    notifies();
    second.join();
}

/* MARK: Exceptions and cancellation of waits */

IN_STACKS static void throws_while_holding()
{
    std::lock_guard<std::mutex> lock(mutex);
    throw std::runtime_error("thrown");
}

static void exceptions()
{
    for (int i = 0; i < 3; i++) {
        try {
            throws_while_holding();
        } catch (const std::runtime_error &) {
        }
    }
    holds_mutex();
}

/* MARK: std::future, which calls futex directly */

static std::promise<int> promise;

IN_STACKS static void waits_for_future()
{
    auto future = promise.get_future();
    about(&waiter);
    int64_t begin = now();
    if (future.get() != 7)
        throw std::logic_error("another value");
    tell_end(__func__, "future", nullptr, begin, waker);
}

IN_STACKS static void keeps_promise()
{
    until_it_waits(&waiter);
    sleep_ns(10 * MS);
    LETS_GO(waker, promise.set_value(7));
}

static void futures()
{
    std::thread thread(waits_for_future);
    keeps_promise();
    thread.join();
}

/* MARK: std::atomic::wait, std::counting_semaphore */

static std::atomic<int> word;

IN_STACKS static void waits_for_word()
{
    about(&waiter);
    int64_t begin = now();
    word.wait(0);
    tell_end(__func__, "atomic", nullptr, begin, waker);
}

IN_STACKS static void changes_word()
{
    until_it_waits(&waiter);
    sleep_ns(10 * MS);
    word = 1;
    LETS_GO(waker, word.notify_one());
}

static void atomics()
{
    std::thread thread(waits_for_word);
    changes_word();
    thread.join();
}

/* MARK: Threads started with all kinds of callables: only their names matter */

struct functor {
    void operator()() const
    {
        sleep_ns(MS);
    }
};

struct object {
    void method(int)
    {
        sleep_ns(MS);
    }
};

static void free_function(int)
{
    sleep_ns(MS);
}

/* Does not appear in any stack. */
static int never_waits(int value)
{
    return value + 1;
}

/* A thread as the Rust library starts it, by function names: rust_main::worker below
 * <std::...>::thread_start. */
extern "C" {
void *rust_start(void *) __asm__(
    "_RNvNvMs0_NtNtNtCsjrHSEGnQ3l9_3std3sys6thread4unixNtB7_6Thread3new12thread_start");
__attribute__((noinline)) void rust_worker() __asm__("_RNvCsjMaewn57Afh_9rust_main6worker");

void rust_worker()
{
    sleep_ns(MS);
}

void *rust_start(void *)
{
    rust_worker();
    return nullptr;
}
}

static void names()
{
    object o;
    std::thread threads[] = {
        std::thread(free_function, 1),
        std::thread(functor{}),
        std::thread(&object::method, &o, 1),
        std::thread([] { sleep_ns(MS); }),
    };
    for (auto &thread : threads)
        thread.join();
    std::async(std::launch::async, free_function, 2).get();
    std::async(std::launch::async, never_waits, 2).get();
    pthread_t rust;
    pthread_create(&rust, nullptr, rust_start, nullptr);
    pthread_join(rust, nullptr);
}

/* MARK: An initialisation that fails, and that the thread that waited for it runs then */

static std::once_flag initialised;

IN_STACKS static void initialises_next()
{
    about(&waiter);
    int64_t begin = now();
    std::call_once(initialised, [begin] {
        tell_end("initialises_next", "once", &initialised, begin, waker);
        while (now() < begin + 20 * MS)
            continue;
    });
}

IN_STACKS static void fails_to_initialise()
{
    std::thread thread;
    try {
        std::call_once(initialised, [&thread] {
            thread = std::thread(initialises_next);
            until_it_waits(&waiter);
            sleep_ns(10 * MS);
            waker = new_release(me(), "fails_to_initialise", now());
            throw std::runtime_error("not this time");
        });
    } catch (const std::runtime_error &) {
        waker->done = now();
    }
    thread.join();
}

/* MARK: Scenarios */

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)();
    } scenarios[] = {
        {"std-mutex", holds_mutex},        {"std-time-limit", time_limit},
        {"std-shared", holds_shared},      {"std-condition", conditions},
        {"std-exceptions", exceptions},    {"std-future", futures},
        {"std-atomic", atomics},           {"std-threads", names},
        {"std-once", fails_to_initialise},
    };

    for (auto &scenario : scenarios) {
        if (argc == 2 && strcmp(argv[1], scenario.name) == 0) {
            scenario.run();
            print_answers();
            return 0;
        }
    }
    return 2;
}
