/*
 * What the coroutines of trail/record.hpp promise, beyond what examples/coroutines needs: one coroutine, `opens`, does to others
 * all that can be done, and logs after each that it runs itself. tests/tracer/adapters.py has the answers.
 *
 *     coroutine-rules FILE FORMAT
 */
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <thread>
#include <trail/record.hpp>

/* Initial: suspend_always or suspend_never. At its end it transfers to what waits for it, or to nothing. */
template <typename Initial> struct job {
    struct promise_type;
    using handle = std::coroutine_handle<promise_type>;
    struct continues {
        bool await_ready() noexcept { return false; }
        void await_resume() noexcept {}
        std::coroutine_handle<> await_suspend(handle h) noexcept { return h.promise().continuation; }
    };
    struct promise_type : trail::coroutine<promise_type> {
        std::coroutine_handle<> continuation = std::noop_coroutine();
        job get_return_object() { return {handle::from_promise(*this)}; }
        auto initial_suspend() { return this->starts(Initial{}); }
        auto final_suspend() noexcept { return this->ends(continues{}); }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    handle h;
    bool await_ready() { return false; }
    handle await_suspend(std::coroutine_handle<> by) { return h.promise().continuation = by, h; }
    void await_resume() {}
    ~job() { h.destroy(); }
};

/* Its frame goes by itself, at its end. */
struct detached {
    struct promise_type : trail::coroutine<promise_type> {
        detached get_return_object() { return {}; }
        auto initial_suspend() { return starts(std::suspend_never{}); }
        auto final_suspend() noexcept { return ends(std::suspend_never{}); }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

using lazy = job<std::suspend_always>;
using eager = job<std::suspend_never>;

/* Waits until it is opened; its awaiter comes from an operator. */
struct gate {
    std::coroutine_handle<> waiter;
    struct awaiter {
        gate &of;
        bool await_ready() { return false; }
        void await_suspend(std::coroutine_handle<> h) { of.waiter = h; }
        void await_resume() {}
    };
    awaiter operator co_await() { return {*this}; }
};

/* Does not suspend after all. */
struct refusal {
    bool await_ready() { return false; }
    bool await_suspend(std::coroutine_handle<>) { return false; }
    void await_resume() {}
};

struct is_ready {
    bool await_ready() { return true; }
    void await_suspend(std::coroutine_handle<>) {}
    int await_resume() { return 1; }
};

eager waits(gate &g) { co_await g; }
eager refuses() { co_await refusal{}; }
lazy child() { co_return; }
eager nests() { co_await child(); }
detached alone() { co_await is_ready{}; }
eager foreign(gate &g) { co_await g; }
eager annotated(gate &g) { co_await g; }

static void says(const char *what)
{
    trail::log(0, "runs", what);
}

lazy opens(gate &last)
{
    gate first, never, by_thread, by_goroutine;
    {
        eager w = waits(first);
        says("created one that runs at once");
        first.waiter.resume();
        says("resumed one that waited, up to its end");
    }
    {
        eager r = refuses();
        says("one that did not suspend after all has ended");
        eager n = nests();
        says("one that waited for a child has ended");
    }
    alone();
    says("a detached one has ended");
    {
        eager dropped = waits(never);
    }
    says("one that waited is destroyed");
    eager f = foreign(by_thread);
    std::thread([&] { trail::woken(f.h); }).join();
    f.h.resume();
    eager a = annotated(by_goroutine);
    std::thread([&] {
        trail::log(0, "other", "a thread that annotates");
        trail::woken(a.h);
        trail::woken(a.h); /* the first counts */
        trail::woken(std::noop_coroutine());
    }).join();
    a.h.resume();
    says("resumed what threads without coroutines woke");
    co_await last;
}

int main(int, char **argv)
{
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0666);
    trail_options options = {};
    trail_error err;
    trail_stats stats;
    options.format = atoi(argv[2]);
    trail::trace_coroutines();
    if (fd < 0 || !trail_start_fd(&options, fd, &err))
        return 1;
    std::thread([] {
        gate last;
        lazy o = opens(last);
        o.h.resume();
        last.waiter.resume();
    }).join();
    if (!trail_stop(&err))
        fprintf(stderr, "%s\n", err.message);
    trail_stats_get(&stats);
    if (stats.misuse)
        fprintf(stderr, "%llu calls in a wrong order\n", (unsigned long long)stats.misuse);
    return stats.misuse != 0;
}
