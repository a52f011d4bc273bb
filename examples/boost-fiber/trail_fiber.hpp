/*
 * Boost.Fiber in a trace: a scheduling algorithm around any other one that has no fiber properties
 * of its own. In each thread that runs fibers, first of all:
 *
 *     boost::fibers::use_scheduling_algorithm<trail_fiber::traced<boost::fibers::algo::round_robin>>();
 *
 * Boost calls an algorithm when a fiber becomes ready (`awakened`), when the thread needs one to
 * run (`pick_next`), when it has none (`suspend_until`), and, in the thread of the waker, when it
 * made a fiber of another thread ready (`notify`). That is all that a trace needs:
 *
 *     pick_next    the running fiber ends, sleeps, waits or yields; the one returned runs
 *     awakened     the fiber is new, or woken by the running fiber, or, in the dispatcher of its
 *                  thread, woken by a timer or by another thread
 *     notify       the running fiber of the calling thread wakes the dispatcher
 *
 * Fibers of other threads. `notify` does not name the fiber that becomes ready; it becomes ready
 * later, when the dispatcher of its thread calls `awakened`. So the dispatcher is a goroutine of
 * its own: woken by the fiber that notified, it wakes the fiber. This chain is recorded only where
 * it is proved, see `flush`; otherwise the fiber is woken by nothing. A waker is never guessed.
 *
 * Not for versions of Boost.Fiber with wakers (class boost::fibers::waker, newer than 1.74): there
 * an algorithm cannot see whether a fiber waits or yields.
 */
#ifndef TRAIL_FIBER_HPP
#define TRAIL_FIBER_HPP

#include <algorithm>
#include <atomic>
#include <boost/fiber/all.hpp>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <trail/record.h>
#include <utility>
#include <vector>

#if __has_include(<boost/fiber/waker.hpp>)
#error "this version of Boost.Fiber does not show whether a fiber waits or yields"
#endif

namespace trail_fiber
{

using boost::fibers::context;
using boost::fibers::type;

/*
 * All goroutines and all names, for the callbacks of the tracer. A goroutine's start function is
 * the address of a byte of `addresses`, from which `symbolize` gets its name; return addresses are
 * one byte higher.
 */
class registry
{
  public:
    static registry &get()
    {
        static registry *all = new registry; /* outlives every thread */
        return *all;
    }

    void add(trail_g *g)
    {
        std::lock_guard<std::mutex> hold(lock_);
        goroutines_.insert(g);
    }

    void remove(trail_g *g)
    {
        std::lock_guard<std::mutex> hold(lock_);
        goroutines_.erase(g);
    }

    /* Returns the address that stands for a name; 0 when there are too many. */
    uintptr_t function(const std::string &name)
    {
        std::lock_guard<std::mutex> hold(lock_);
        auto at = std::find(names_.begin(), names_.end(), name);
        std::size_t i = static_cast<std::size_t>(at - names_.begin());
        if (i >= sizeof addresses_ / 2)
            return 0;
        if (at == names_.end())
            names_.push_back(name);
        return reinterpret_cast<uintptr_t>(addresses_) + 2 * i;
    }

    /*
     * Call before the trace starts. One in a format before 22 must start before any thread runs
     * fibers: Boost cannot stop them, so there must be none to stop.
     */
    static void set_host()
    {
        trail_host host = {};
        host.context = &get();
        host.each_goroutine = each;
        host.symbolize = symbolize;
        trail_host_set(&host);
    }

  private:
    static void each(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
    {
        registry *all = static_cast<registry *>(context);
        std::lock_guard<std::mutex> hold(all->lock_);
        for (trail_g *g : all->goroutines_)
            visit(g, arg);
    }

    static bool symbolize(void *context, uintptr_t pc, trail_pc_name *name)
    {
        registry *all = static_cast<registry *>(context);
        std::lock_guard<std::mutex> hold(all->lock_);
        std::size_t i = (pc - reinterpret_cast<uintptr_t>(all->addresses_)) / 2;
        if (i >= all->names_.size())
            return false;
        *name = {all->names_[i].c_str(), "", 0};
        return true;
    }

    std::mutex lock_;
    std::set<trail_g *> goroutines_;
    std::deque<std::string> names_; /* a deque: symbolize returns pointers into it */
    char addresses_[8192];
};

/* What the trace keeps of a fiber. Boost owns it, and deletes it with the fiber. */
class properties : public boost::fibers::fiber_properties
{
  public:
    properties(context *ctx, std::string name) : fiber_properties(ctx), name(std::move(name))
    {
        trail_g_init(&g);
        registry::get().add(&g);
    }

    ~properties() override
    {
        registry::get().remove(&g);
    }

    trail_g g;
    const std::string name;
    enum { READY, WAITS, SLEEPS } state = READY;
};

/* The name of the next fiber that this thread creates. */
inline std::string &next_name()
{
    static thread_local std::string name;
    return name;
}

/* Returns a fiber with a name. */
template <typename... Args>
boost::fibers::fiber fiber(const char *name, boost::fibers::launch launch, Args &&...args)
{
    next_name() = name;
    return boost::fibers::fiber(launch, std::forward<Args>(args)...);
}

template <typename Base> class traced : public Base
{
  public:
    /* `name`: of the thread's main fiber. */
    template <typename... Args>
    explicit traced(const std::string &name = "main", Args &&...args)
        : Base(std::forward<Args>(args)...)
    {
        static std::atomic<int32_t> slots{0};
        registry &all = registry::get();
        trail_m_start(&m_);
        trail_p_init(&p_, slots++);
        trail_proc_start(&m_, &p_);
        trail_g_init(&dispatcher_);
        all.add(&dispatcher_);
        main_ = new properties(context::active(), name);
        context::active()->set_properties(main_);
        trail_go_create(&m_, &main_->g, all.function(name), TRAIL_NO_STACK);
        trail_go_create_blocked(&m_, &dispatcher_, all.function("dispatcher of " + name),
                                TRAIL_NO_STACK);
        trail_go_start(&m_, &main_->g);
    }

    /*
     * At the end of the thread. The dispatcher has returned to the main fiber: no call says so. Another thread may have
     * woken it since it was here last.
     */
    ~traced() override
    {
        if (m_.g == nullptr) {
            if (dispatcher_is_waiting())
                trail_go_unblock(&m_, &dispatcher_, TRAIL_NO_STACK);
            trail_go_start(&m_, &dispatcher_);
        }
        if (main_->state != properties::READY)
            trail_go_unblock(&m_, &main_->g, TRAIL_NO_STACK);
        trail_go_end(&m_);
        trail_go_start(&m_, &main_->g);
        trail_go_end(&m_);
        registry::get().remove(&dispatcher_);
        trail_proc_stop(&m_);
        trail_p_fini(&p_);
        trail_m_exit(&m_);
    }

    void awakened(context *ctx) noexcept override
    {
        context *active = context::active();
        if (!is_dispatcher(active) && active->get_properties() == nullptr)
            dispatched(active);
        if (is_dispatcher(ctx)) {
            Base::awakened(ctx);
        } else if (ctx->get_properties() == nullptr) {
            create(ctx);
            Base::awakened(ctx);
        } else if (is_dispatcher(active)) {
            woken_.push_back(ctx);
        } else {
            wake(ctx);
        }
    }

    context *pick_next() noexcept override
    {
        context *active = context::active(), *next;
        if (is_dispatcher(active))
            flush();
        else
            leave(active);
        next = Base::pick_next();
        if (next != nullptr && is_dispatcher(next))
            start_dispatcher();
        else if (next != nullptr)
            trail_go_start(&m_, &of(next).g);
        return next;
    }

    bool has_ready_fibers() const noexcept override
    {
        return !woken_.empty() || Base::has_ready_fibers();
    }

    /* The dispatcher has nothing to run. */
    void suspend_until(std::chrono::steady_clock::time_point const &time) noexcept override
    {
        trail_proc_stop(&m_);
        Base::suspend_until(time);
        trail_proc_start(&m_, &p_);
        start_dispatcher();
    }

    /* In the thread of the waker; Boost calls it after the fiber is in the queue of this thread. */
    void notify() noexcept override
    {
        trail_m *m = trail_m_current();
        if (m != &m_) {
            std::lock_guard<std::mutex> hold(lock_);
            uint64_t waker = m != nullptr && m->g != nullptr ? m->g->id : 0;
            notices_.push_back(waker);
            if (dispatcher_waits_ && waker != 0) {
                trail_go_unblock(m, &dispatcher_, TRAIL_NO_STACK);
                dispatcher_waits_ = false;
            }
        }
        Base::notify();
    }

  private:
    static bool is_dispatcher(context *ctx)
    {
        return ctx->is_context(type::dispatcher_context);
    }

    static properties &of(context *ctx)
    {
        return static_cast<properties &>(*ctx->get_properties());
    }

    void create(context *ctx)
    {
        properties *made = new properties(ctx, std::exchange(next_name(), "fiber"));
        ctx->set_properties(made);
        trail_go_create(&m_, &made->g, registry::get().function(made->name), TRAIL_NO_STACK);
    }

    /* launch::dispatch: a new fiber runs at once, without pick_next, and its creator is ready. */
    void dispatched(context *active)
    {
        create(active);
        trail_go_sched(&m_, TRAIL_NO_STACK);
        trail_go_start(&m_, &of(active).g);
    }

    /*
     * The running fiber leaves its thread. What it waits for is locked until it has, so that no
     * other thread changes its links. A fiber that ends is in no list of fibers any more; the hook
     * of the ended ones is no sign of it, as the last of their list looks unlinked.
     */
    void leave(context *ctx)
    {
        properties &fiber = of(ctx);
        if (ctx->is_context(type::worker_context) && !ctx->worker_is_linked()) {
            trail_go_end(&m_);
        } else if (ctx->wait_is_linked()) {
            fiber.state = properties::WAITS;
            trail_go_block(&m_, TRAIL_BLOCK_UNSPECIFIED, TRAIL_NO_STACK);
        } else if (ctx->sleep_is_linked()) {
            fiber.state = properties::SLEEPS;
            trail_go_block(&m_, TRAIL_BLOCK_SLEEP, TRAIL_NO_STACK);
        } else {
            trail_go_sched(&m_, TRAIL_NO_STACK);
        }
    }

    /* Reported first: as soon as Base has the fiber, another thread may run it. */
    void wake(context *ctx)
    {
        properties &fiber = of(ctx);
        if (fiber.state != properties::READY)
            trail_go_unblock(&m_, &fiber.g, TRAIL_NO_STACK);
        fiber.state = properties::READY;
        Base::awakened(ctx);
    }

    /* The dispatcher runs. It is shown only if a fiber of another thread has woken it. */
    void start_dispatcher()
    {
        std::lock_guard<std::mutex> hold(lock_);
        heard_ = notices_.size();
        if (!dispatcher_waits_)
            trail_go_start(&m_, &dispatcher_);
    }

    bool dispatcher_is_waiting()
    {
        std::lock_guard<std::mutex> hold(lock_);
        return dispatcher_waits_;
    }

    /*
     * The dispatcher has collected the fibers that timers and other threads made ready. The latter
     * are paired with notices: every notice that was heard before belongs to a fiber that has been
     * collected, now or earlier, and a fiber may be collected before its notice is heard. When the
     * numbers are equal, all of them are paired, and if all notices are of one waker, which woke the
     * dispatcher, the dispatcher wakes the fibers. Otherwise the waker is not known.
     */
    void flush()
    {
        bool known;
        for (context *ctx : woken_)
            unpaired_ += from_other_thread(ctx);
        {
            std::lock_guard<std::mutex> hold(lock_);
            auto end = notices_.begin() + static_cast<std::ptrdiff_t>(heard_);
            bool paired = unpaired_ == heard_;
            known = m_.g != nullptr && paired &&
                    std::adjacent_find(notices_.begin(), end, std::not_equal_to<>()) == end;
            if (paired) {
                notices_.erase(notices_.begin(), end);
                heard_ = unpaired_ = 0;
            }
        }
        for (context *ctx : woken_)
            if (known && from_other_thread(ctx))
                trail_go_unblock(&m_, &of(ctx).g, TRAIL_NO_STACK),
                    of(ctx).state = properties::READY;
        leave_dispatcher();
        for (context *ctx : std::exchange(woken_, {}))
            wake(ctx);
    }

    void leave_dispatcher()
    {
        std::lock_guard<std::mutex> hold(lock_);
        if (m_.g != nullptr)
            trail_go_block(&m_, TRAIL_BLOCK_SYSTEM, TRAIL_NO_STACK);
        dispatcher_waits_ = dispatcher_waits_ || m_.g == nullptr;
    }

    static bool from_other_thread(context *ctx)
    {
        return of(ctx).state == properties::WAITS && ctx->twstatus.load() != TIMED_OUT;
    }

    /* What Boost's timer leaves in twstatus of a fiber that waited with a time limit. */
    static constexpr std::intptr_t TIMED_OUT = -2;

    trail_m m_;
    trail_p p_;
    properties *main_;
    trail_g dispatcher_;
    std::vector<context *> woken_; /* by the dispatcher, until it picks the next */

    std::mutex lock_;               /* of what `notify` changes from other threads */
    std::vector<uint64_t> notices_; /* the wakers' goroutines, 0: unknown; not paired yet */
    bool dispatcher_waits_ = true;

    std::size_t heard_ = 0;    /* notices when the dispatcher started */
    std::size_t unpaired_ = 0; /* fibers from other threads, not paired yet */
};

} /* namespace trail_fiber */

#endif
