/*
 * Fibers of Boost in three threads, in a trace: fibers that wake each other within a thread and
 * across threads, sleep, yield, and one case in which the waker cannot be known.
 *
 *     c++ -std=c++17 boost_fiber.cpp $(pkg-config --cflags --libs trail-record) -lboost_fiber -lboost_context -pthread
 *     ./a.out fiber.trace && trail print fiber.trace && trail why -g 3 fiber.trace
 *
 * Sanitizers: AddressSanitizer and UndefinedBehaviorSanitizer find nothing; fibers have stacks of
 * fixed size, and no exception leaves one. ThreadSanitizer cannot follow it: Debian's libraries of
 * Boost are not built with it, so it sees neither their locks nor the switches between fibers. The
 * build leaves the example out then.
 */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <thread>

#include "trail_fiber.hpp"

namespace fibers = boost::fibers;
using fibers::launch;
using trail_fiber::fiber;

/* Boost's algorithm, and whether its thread has nothing to do: a waker that waits for this knows that its target waits. */
class watched : public fibers::algo::round_robin
{
  public:
    explicit watched(std::atomic<bool> *idle) : idle_(idle)
    {
    }

    void suspend_until(std::chrono::steady_clock::time_point const &time) noexcept override
    {
        idle_->store(true);
        round_robin::suspend_until(time);
        idle_->store(false);
    }

  private:
    std::atomic<bool> *idle_;
};

static std::atomic<bool> idle[3];

static void use_fibers(int thread, const char *name)
{
    fibers::use_scheduling_algorithm<trail_fiber::traced<watched>>(name, &idle[thread]);
}

/* Keeps the thread, with all its fibers. */
static void until(const std::atomic<bool> &condition)
{
    while (!condition.load())
        std::this_thread::yield();
}

/* ask and answer: each wakes the other, in another thread, which does nothing else. */
enum { ROUNDS = 3 };
static fibers::buffered_channel<int> questions(2), answers(2);

static void ask()
{
    for (int i = 0, answer; i < ROUNDS; i++) {
        until(idle[1]);
        questions.push(i);
        answers.pop_wait_for(answer, std::chrono::hours(1));
    }
    questions.close();
}

static void answer()
{
    int question;
    while (questions.pop(question) == fibers::channel_op_status::success) {
        until(idle[0]);
        answers.push(question + 1);
    }
}

/* `one` and `two` are woken by fibers of two threads while theirs is busy: in what order cannot be known. */
static fibers::promise<void> results[2];
static std::atomic<bool> set[2], waits;

static void get_result(int i)
{
    results[i].get_future().get();
}

static void set_result(int i)
{
    until(waits);
    results[i].set_value();
    set[i] = true;
}

static void busy()
{
    waits = true;
    until(set[0]);
    until(set[1]);
}

/* A mutex, within a thread; a yield; a sleep; a time limit that is reached. */
static fibers::mutex mutex;

static void hold()
{
    mutex.lock();
    boost::this_fiber::yield(); /* to the fiber that creates `contend` */
    boost::this_fiber::yield(); /* to that */
    mutex.unlock();
}

static void contend()
{
    mutex.lock();
    mutex.unlock();
}

static void nap()
{
    boost::this_fiber::sleep_for(std::chrono::milliseconds(1));
}

static void give_up()
{
    fibers::promise<void> never;
    never.get_future().wait_for(std::chrono::milliseconds(1));
}

static void run_threads()
{
    use_fibers(0, "main");
    std::thread second([] {
        use_fibers(1, "second");
        fiber("answer", launch::post, answer).join();
        fiber("set one", launch::post, set_result, 0).join();
    });
    std::thread third([] {
        use_fibers(2, "third");
        fiber("set two", launch::post, set_result, 1).join();
    });
    fiber("give up", launch::post, give_up).join();
    fiber("ask", launch::post, ask).join();
    fibers::fiber one = fiber("one", launch::post, get_result, 0);
    fibers::fiber two = fiber("two", launch::post, get_result, 1);
    fiber("busy", launch::post, busy).join();
    one.join();
    two.join();
    fibers::fiber holder = fiber("hold", launch::dispatch, hold);
    fiber("contend", launch::post, contend).join();
    holder.join();
    fiber("nap", launch::post, nap).join();
    second.join();
    third.join();
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "fiber.trace";
    trail_options options = {};
    trail_error err;
    trail_stats stats;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    options.format = argc > 2 ? atoi(argv[2]) : 0;
    options.task_word = "fiber";
    trail_fiber::registry::set_host();
    if (fd < 0) {
        perror(path);
        return 1;
    }
    if (!trail_start_fd(&options, fd, &err)) {
        fprintf(stderr, "%s: %s\n", path, err.message);
        return 1;
    }
    std::thread(run_threads).join();
    if (!trail_stop(&err))
        fprintf(stderr, "%s: %s\n", path, err.message);
    trail_stats_get(&stats);
    if (stats.misuse)
        fprintf(stderr, "%llu calls in a wrong order\n", (unsigned long long)stats.misuse);
    return stats.misuse != 0;
}
