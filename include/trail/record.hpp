/*
 * trail/record.h for C++: scopes instead of pairs of calls. Header-only, C++11 or newer; the
 * contracts are those of the functions called. While nothing is recorded, each costs a load and a
 * branch.
 *
 *     trail::task request("GET /");
 *     {
 *         trail::region parse(request, "parse");
 *         trail::log(request, "size", "%zu bytes", size);
 *     }
 */
#ifndef TRAIL_RECORD_HPP
#define TRAIL_RECORD_HPP

#include <cstdint>
#include <string>
#include <trail/record.h>

/* As in trail/record.h: these functions are never frames of a stack. */
#define TRAIL_ALWAYS_INLINE_ __attribute__((always_inline)) inline

namespace trail
{

/* A task that ends with its scope. Movable, not copyable. Converts to its ID. */
class task
{
  public:
    TRAIL_ALWAYS_INLINE_ explicit task(const char *name, std::uint64_t parent = 0)
        : id_(trail_task_begin(parent, name))
    {
    }
    TRAIL_ALWAYS_INLINE_ explicit task(const std::string &name, std::uint64_t parent = 0)
        : task(name.c_str(), parent)
    {
    }
    task(task &&other) noexcept : id_(other.id_)
    {
        other.id_ = 0;
    }
    task(const task &) = delete;
    task &operator=(const task &) = delete;
    task &operator=(task &&) = delete;
    TRAIL_ALWAYS_INLINE_ ~task()
    {
        trail_task_end(id_);
    }

    operator std::uint64_t() const noexcept
    {
        return id_;
    }

  private:
    std::uint64_t id_;
};

/* A region that ends with its scope, as TRAIL_REGION. `name` must outlive it. */
class region
{
  public:
    TRAIL_ALWAYS_INLINE_ explicit region(const char *name) : region(0, name)
    {
    }
    TRAIL_ALWAYS_INLINE_ region(std::uint64_t task, const char *name)
        : scope_(trail_scope_enter_(task, name))
    {
    }
    /* Only if the category is on when it begins, as TRAIL_CATEGORY_REGION. */
    TRAIL_ALWAYS_INLINE_ region(trail_category &category, const char *name)
        : region(category, 0, name)
    {
    }
    TRAIL_ALWAYS_INLINE_ region(trail_category &category, std::uint64_t task, const char *name)
        : scope_(trail_scope_enter_in_(&category, task, name))
    {
    }
    region(const region &) = delete;
    region &operator=(const region &) = delete;
    TRAIL_ALWAYS_INLINE_ ~region()
    {
        trail_scope_leave_(&scope_);
    }

  private:
    const trail_scope_ scope_;
};

TRAIL_ALWAYS_INLINE_ void log(std::uint64_t task, const char *category, const char *message)
{
    trail_log(task, category, message);
}

TRAIL_ALWAYS_INLINE_ void log(std::uint64_t task, const char *category, const std::string &message)
{
    trail_log(task, category, message.c_str());
}

/* Like printf; formats only while something is recorded. */
template <typename First, typename... Rest>
TRAIL_ALWAYS_INLINE_ void log(std::uint64_t task, const char *category, const char *format,
                              First first, Rest... rest)
{
    if (trail_enabled())
        trail_logf_(task, category, format, first, rest...);
}

} /* namespace trail */

#if defined(__cpp_impl_coroutine) && __cpp_impl_coroutine >= 201902L
#include <atomic>
#include <coroutine>
#include <mutex>
#include <type_traits>
#include <unordered_map>
#include <utility>

/*
 * MARK: C++20 coroutines
 *
 * Each coroutine becomes a goroutine, whatever its task type and whatever it waits for. The promise
 * type gets a base class and passes on what its initial_suspend and final_suspend would return:
 *
 *     struct promise_type : trail::coroutine<promise_type> {
 *         auto initial_suspend() { return starts(std::suspend_always{}); }
 *         auto final_suspend() noexcept { return ends(std::suspend_always{}); }
 *     };
 *
 * Its await_transform, inherited from the base class, wraps each awaitable: the coroutine waits
 * before the awaitable's await_suspend, and runs from its await_resume on, on the thread that
 * resumes it. A promise with an await_transform of its own returns awaits(...) from it.
 *
 * Wakers. A coroutine that another one resumes directly, by resume() or by symmetric transfer from
 * its end, is woken by it. An executor calls trail::woken(handle) when it receives a coroutine,
 * before another thread can resume it: the coroutine is woken by what runs on the calling thread.
 * Otherwise it is woken by nothing: only its thread knows when it runs again.
 *
 * A coroutine that resumes another one is ready, not running, until that one waits or ends. A
 * coroutine's start function is its resume function, which `trail symbolize` names. A coroutine
 * that is destroyed while it waits runs at this moment, and ends.
 *
 * Threads need no set-up: at its first coroutine a thread gets an M and a P of its own until it
 * exits. From then on, what it annotates while no coroutine runs is lost. An executor marks its
 * waits for work by trail::idle. trace_coroutines() precedes the start of the trace. It sets the
 * host, so coroutines and another runtime cannot be traced together.
 *
 * An awaitable's await_suspend must not throw. While nothing is recorded, a coroutine costs an
 * allocation and a mutex when it is created and destroyed, and a few stores when it waits.
 */
namespace trail
{

namespace coroutines_
{

enum { READY, RUNNING, WAITING };

/*
 * The trace's data of a coroutine, which outlives its frame: another thread may destroy the frame
 * while the coroutine ends.
 */
struct node {
    trail_g g;
    void *frame;
    std::atomic<int> state{READY};
    trail_g *outer = nullptr; /* ran on this thread before and continues afterwards */
};

/* All coroutines, by their frames. */
struct registry {
    std::mutex lock;
    std::unordered_map<void *, node *> nodes;

    static registry &get()
    {
        static registry *all = new registry; /* outlives every thread */
        return *all;
    }

    void add(node *n)
    {
        std::lock_guard<std::mutex> hold(lock);
        nodes[n->frame] = n;
    }

    /* The frame at this address may already belong to another coroutine. */
    void remove(const node *n)
    {
        std::lock_guard<std::mutex> hold(lock);
        auto at = nodes.find(n->frame);
        if (at != nodes.end() && at->second == n)
            nodes.erase(at);
    }

    node *find(void *frame)
    {
        std::lock_guard<std::mutex> hold(lock);
        auto at = nodes.find(frame);
        return at == nodes.end() ? nullptr : at->second;
    }

    static void each(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
    {
        registry *all = static_cast<registry *>(context);
        std::lock_guard<std::mutex> hold(all->lock);
        for (auto &entry : all->nodes)
            visit(&entry.second->g, arg);
    }
};

/* A thread that runs coroutines. It has a P from its first one on. */
struct thread {
    trail_m m;
    trail_p p;
    trail_g *inherited = nullptr; /* the outer goroutine of the coroutine that runs next */

    thread()
    {
        static std::atomic<std::int32_t> ids{0};
        trail_m_start(&m);
        trail_p_init(&p, ids++);
    }

    ~thread()
    {
        if (m.p)
            trail_proc_stop(&m);
        trail_p_fini(&p);
        trail_m_exit(&m);
    }

    /*
     * Not inline: compilers keep the address of a thread-local variable in a coroutine, which may
     * continue on another thread.
     */
    __attribute__((noinline)) static thread &current()
    {
        static thread_local thread self;
        __asm__ volatile("");
        return self;
    }

    static thread &with_p()
    {
        thread &self = current();
        if (!self.m.p)
            trail_proc_start(&self.m, &self.p);
        return self;
    }
};

/* Makes a waiting coroutine ready. Only the first waker counts. */
TRAIL_ALWAYS_INLINE_ void wake(node *n)
{
    int waits = WAITING;
    if (n && n->state.compare_exchange_strong(waits, READY)) {
        trail_m *m = trail_m_current(); /* of a thread that annotates, or of one with coroutines */
        trail_go_unblock(m ? m : &thread::current().m, &n->g, 0);
    }
}

/*
 * The coroutine now runs on this thread. The goroutine that ran here becomes its outer one and
 * wakes it if necessary.
 */
TRAIL_ALWAYS_INLINE_ void resume(node *n)
{
    thread &self = thread::with_p();
    if (self.m.g == &n->g)
        return;
    trail_g *inherited = std::exchange(self.inherited, nullptr);
    n->outer = self.m.g ? self.m.g : inherited;
    wake(n);
    if (self.m.g)
        trail_go_sched(&self.m, 0);
    n->state.store(RUNNING);
    trail_go_start(&self.m, &n->g);
}

/* Reports that the coroutine waits; returns its outer goroutine, which does not run yet. */
TRAIL_ALWAYS_INLINE_ trail_g *block(node *n)
{
    n->state.store(WAITING);
    trail_go_block(&thread::current().m, TRAIL_BLOCK_UNSPECIFIED, 0);
    return std::exchange(n->outer, nullptr);
}

/* Ends the coroutine that runs, and frees `n`. */
TRAIL_ALWAYS_INLINE_ trail_g *end(node *n)
{
    trail_g *outer = n->outer;
    trail_go_end(&thread::current().m);
    registry::get().remove(n);
    delete n;
    return outer;
}

/* The thread continues with `outer`. */
TRAIL_ALWAYS_INLINE_ void back_to(trail_g *outer)
{
    if (outer)
        trail_go_start(&thread::current().m, outer);
}

/* The thread continues with `next`, or with `outer` if `next` is not a traced coroutine. */
TRAIL_ALWAYS_INLINE_ void transfer(trail_g *outer, std::coroutine_handle<> next)
{
    if (outer && !registry::get().find(next.address()))
        back_to(outer);
    else
        thread::current().inherited = outer;
}

template <typename Awaitable> decltype(auto) awaiter_of(Awaitable &&awaitable)
{
    if constexpr (requires { std::forward<Awaitable>(awaitable).operator co_await(); })
        return std::forward<Awaitable>(awaitable).operator co_await();
    else if constexpr (requires { operator co_await(std::forward<Awaitable>(awaitable)); })
        return operator co_await(std::forward<Awaitable>(awaitable));
    else
        return std::forward<Awaitable>(awaitable);
}

/*
 * Wraps an awaiter; Inner may be a reference. After the inner await_suspend the coroutine may run
 * on another thread or be gone, so only local variables are used.
 */
template <typename Inner> struct traced_awaiter {
    node *self;
    Inner inner;

    decltype(auto) await_ready()
    {
        return inner.await_ready();
    }

    template <typename Promise>
    TRAIL_ALWAYS_INLINE_ auto await_suspend(std::coroutine_handle<Promise> handle)
    {
        using result = decltype(inner.await_suspend(handle));
        /* The awaiter is an aggregate with all members set. */
        trail_g *outer = block(self); /* NOLINT(clang-analyzer-core.CallAndMessage) */
        if constexpr (std::is_void_v<result>) {
            inner.await_suspend(handle);
            back_to(outer);
        } else if constexpr (std::is_same_v<result, bool>) {
            bool suspended = inner.await_suspend(handle);
            if (suspended)
                back_to(outer);
            else
                thread::current().inherited = outer;
            return suspended;
        } else {
            std::coroutine_handle<> next = inner.await_suspend(handle);
            transfer(outer, next);
            return next;
        }
    }

    TRAIL_ALWAYS_INLINE_ decltype(auto) await_resume()
    {
        resume(self);
        return inner.await_resume();
    }
};

/*
 * Wraps the awaiter of final_suspend. The coroutine ends last, so that it is the waker of what
 * follows.
 */
template <typename Inner> struct final_awaiter {
    node *self; /* owned */
    Inner inner;

    bool await_ready() noexcept
    {
        return inner.await_ready();
    }

    template <typename Promise>
    TRAIL_ALWAYS_INLINE_ auto await_suspend(std::coroutine_handle<Promise> handle) noexcept
    {
        using result = decltype(inner.await_suspend(handle));
        node *ending = std::exchange(self, nullptr);
        if constexpr (std::is_void_v<result>) {
            inner.await_suspend(handle);
            back_to(end(ending));
        } else if constexpr (std::is_same_v<result, bool>) {
            bool suspended = inner.await_suspend(handle);
            back_to(end(ending));
            return suspended;
        } else {
            std::coroutine_handle<> next = inner.await_suspend(handle);
            if (trail_enabled())
                wake(registry::get().find(next.address()));
            transfer(end(ending), next);
            return next;
        }
    }

    TRAIL_ALWAYS_INLINE_ void await_resume() noexcept
    {
        if (self)
            back_to(end(self));
        inner.await_resume();
    }
};

} /* namespace coroutines_ */

/* The base class of a promise type that is traced. */
template <typename Promise> class coroutine
{
  public:
    coroutine() = default;
    coroutine(const coroutine &) = delete;
    coroutine &operator=(const coroutine &) = delete;

    ~coroutine()
    {
        if (node_) {
            coroutines_::resume(node_);
            coroutines_::back_to(coroutines_::end(node_));
        }
    }

    /* For initial_suspend. */
    template <typename Awaiter> TRAIL_ALWAYS_INLINE_ auto starts(Awaiter inner)
    {
        auto handle = std::coroutine_handle<Promise>::from_promise(static_cast<Promise &>(*this));
        node_ = new coroutines_::node;
        node_->frame = handle.address();
        trail_g_init(&node_->g);
        coroutines_::registry::get().add(node_);
        /* All compilers begin a frame with the address of its resume function. */
        trail_go_create(&coroutines_::thread::with_p().m, &node_->g,
                        *static_cast<std::uintptr_t *>(node_->frame), 0);
        return initial_awaiter<Awaiter>{node_, inner};
    }

    /* For await_transform. */
    template <typename Awaitable> auto awaits(Awaitable &&awaitable)
    {
        using inner = decltype(coroutines_::awaiter_of(std::forward<Awaitable>(awaitable)));
        return coroutines_::traced_awaiter<inner>{
            node_, coroutines_::awaiter_of(std::forward<Awaitable>(awaitable))};
    }

    template <typename Awaitable> auto await_transform(Awaitable &&awaitable)
    {
        return awaits(std::forward<Awaitable>(awaitable));
    }

    /* For final_suspend. */
    template <typename Awaiter> auto ends(Awaiter inner) noexcept
    {
        return coroutines_::final_awaiter<Awaiter>{std::exchange(node_, nullptr), inner};
    }

    /* For trail::woken. */
    coroutines_::node *trail_node() const noexcept
    {
        return node_;
    }

  private:
    /* It is ready once created, and runs from its first resumption on. */
    template <typename Inner> struct initial_awaiter {
        coroutines_::node *self;
        Inner inner;

        bool await_ready()
        {
            return inner.await_ready();
        }

        template <typename Handle> auto await_suspend(Handle handle)
        {
            return inner.await_suspend(handle);
        }

        TRAIL_ALWAYS_INLINE_ void await_resume()
        {
            coroutines_::resume(self);
            inner.await_resume();
        }
    };

    coroutines_::node *node_ = nullptr;
};

/*
 * Records that the calling thread causes the coroutine to be resumed. Call it before another thread
 * can resume or destroy the coroutine. Does nothing if the coroutine does not wait or is not
 * traced. Handles without a promise type are looked up under a mutex.
 */
template <typename Promise> TRAIL_ALWAYS_INLINE_ void woken(std::coroutine_handle<Promise> handle)
{
    if constexpr (requires { handle.promise().trail_node(); })
        coroutines_::wake(handle.promise().trail_node());
    else
        coroutines_::wake(coroutines_::registry::get().find(handle.address()));
}

/* During its lifetime the calling thread waits for coroutines, and its P is idle. */
class idle
{
  public:
    idle()
    {
        trail_m *m = &coroutines_::thread::current().m;
        if (m->p)
            trail_proc_stop(m);
    }
    idle(const idle &) = delete;
    idle &operator=(const idle &) = delete;
    ~idle()
    {
        coroutines_::thread::with_p();
    }
};

/*
 * Lists coroutines to the tracer; call it before the trace starts. A trace in a format before 22
 * must start before the first coroutine is created.
 */
inline void trace_coroutines()
{
    using coroutines_::registry;
    trail_host host = {};
    host.context = &registry::get();
    host.each_goroutine = registry::each;
    trail_host_set(&host);
}

} /* namespace trail */
#endif

#endif
