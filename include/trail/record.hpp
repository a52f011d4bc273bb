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

/*
 * A task that ends with its scope. Movable, not copyable. Converts to its ID, for parents and
 * regions.
 */
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

#endif
