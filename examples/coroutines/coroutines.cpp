/*
 * Coroutines of C++20 in a trace: a task type and an executor of a thread, as programs write them.
 * What concerns the trace is marked: four lines.
 *
 *     c++ -std=c++20 coroutines.cpp $(pkg-config --cflags --libs trail-record) -pthread
 *     ./a.out coroutines.trace && trail symbolize coroutines.trace -o named.trace && trail why -g 2 named.trace
 */
#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <thread>
#include <trail/record.hpp>

/* Starts when it is awaited; resumes the coroutine that awaits it at its end. */
struct task {
    struct promise_type;
    using handle = std::coroutine_handle<promise_type>;

    struct continues {
        bool await_ready() noexcept { return false; }
        void await_resume() noexcept {}
        std::coroutine_handle<> await_suspend(handle h) noexcept { return h.promise().continuation; }
    };

    struct promise_type : trail::coroutine<promise_type> { /* trace */
        std::coroutine_handle<> continuation = std::noop_coroutine();
        int value = 0;
        task get_return_object() { return {handle::from_promise(*this)}; }
        auto initial_suspend() { return starts(std::suspend_always{}); } /* trace */
        auto final_suspend() noexcept { return ends(continues{}); }      /* trace */
        void return_value(int v) { value = v; }
        void unhandled_exception() { std::terminate(); }
    };

    handle h;
    bool await_ready() { return false; }
    handle await_suspend(std::coroutine_handle<> by) { return h.promise().continuation = by, h; }
    int await_resume() { return h.promise().value; }
    ~task() { h.destroy(); }
};

/* A thread that resumes what is posted to it, until it is stopped and has nothing more to do. */
class executor
{
  public:
    void post(std::coroutine_handle<> h)
    {
        trail::woken(h); /* trace */
        std::lock_guard<std::mutex> hold(lock_);
        ready_.push_back(h);
        changed_.notify_one();
    }

    void run(int count) /* until so many tasks have called done() */
    {
        std::unique_lock<std::mutex> hold(lock_);
        while (done_ < count) {
            while (ready_.empty()) {
                trail::idle waits; /* trace */
                changed_.wait(hold);
            }
            auto h = ready_.front();
            ready_.pop_front();
            hold.unlock();
            h.resume();
            hold.lock();
        }
    }

    void done() { done_++; } /* by its own thread */

  private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<std::coroutine_handle<>> ready_;
    int done_ = 0;
};

/* A value for which one coroutine waits. */
class mailbox
{
  public:
    explicit mailbox(executor &to) : to_(to) {}

    void put(int value) /* when one waits */
    {
        std::coroutine_handle<> h;
        while (!(h = waiter_.exchange(nullptr)))
            std::this_thread::yield();
        value_ = value;
        to_.post(h);
    }

    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<> h) { waiter_ = h; }
    int await_resume() { return value_; }

  private:
    executor &to_;
    std::atomic<std::coroutine_handle<>> waiter_{nullptr};
    int value_ = 0;
};

enum { ROUNDS = 3 };
static executor left, right;
static mailbox questions(right), answers(left);

task add(int a, int b)
{
    co_return a + b;
}

task ask()
{
    int sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        questions.put(i);
        sum = co_await add(sum, co_await answers);
    }
    left.done();
    co_return sum;
}

task answer()
{
    for (int i = 0; i < ROUNDS; i++)
        answers.put(co_await questions * 10);
    right.done();
    co_return 0;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "coroutines.trace";
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    trail_options options = {};
    trail_error err;
    trail_stats stats;
    options.format = argc > 2 ? atoi(argv[2]) : 0;
    options.task_word = "coroutine";
    trail::trace_coroutines();
    if (fd < 0 || !trail_start_fd(&options, fd, &err)) {
        fprintf(stderr, "%s: %s\n", path, fd < 0 ? "cannot write it" : err.message);
        return 1;
    }
    std::thread(
        [] {
            task asks = ask(), answers_them = answer();
            std::thread other([&] { right.post(answers_them.h), right.run(1); });
            left.post(asks.h);
            left.run(1);
            other.join();
            printf("%d\n", asks.h.promise().value);
        })
        .join();
    if (!trail_stop(&err))
        fprintf(stderr, "%s: %s\n", path, err.message);
    trail_stats_get(&stats);
    if (stats.misuse)
        fprintf(stderr, "%llu calls in a wrong order\n", (unsigned long long)stats.misuse);
    return stats.misuse != 0;
}
