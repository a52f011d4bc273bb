/* trail/record.hpp as C++11 and newer see it: without a warning. */
#include <string>
#include <trail/record.hpp>
#include <utility>

static bool take(void *bytes, const trail_chunk *chunk)
{
    *static_cast<std::size_t *>(bytes) += chunk->size;
    return true;
}

static trail::task begin(const std::string &name)
{
    return trail::task(name);
}

static trail_category parts = TRAIL_CATEGORY("parts");

int main()
{
    std::size_t bytes = 0;
    if (!trail_start_sink(nullptr, take, &bytes, nullptr))
        return 1;
    {
        trail::task request = begin("request"), moved = std::move(request);
        trail::task part("part", moved);
        trail::region compute(part, "compute");
        trail::region detail(parts, "detail"), of_task(parts, part, "detail of the task");
        TRAIL_CATEGORY_REGION(&parts, 0, "as in C");
        TRAIL_REGION("inner");
        trail::log(part, "note", std::string("text"));
        trail::log(part, "note", "number %d", 7);
        trail_logf(part, "note", "%s", "plain C");
        trail_log_fields(part, "note", trail_field_int("n", 1), trail_field_text("t", "text"));
    }
    return trail_stop(nullptr) && bytes > 100 ? 0 : 1;
}
