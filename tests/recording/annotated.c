/* A program with annotations. Starts no tracer, or one for part of its run if it is given a
 * path. */
#include <fcntl.h>
#include <trail/record.h>
#include <unistd.h>

static void work(uint64_t task, int number)
{
    TRAIL_REGION("work");
    trail_logf(task, "number", "%d of a message that is too long for one piece: %060d", number, 0);
}

static void own_trace(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (!trail_start_fd(NULL, fd, NULL))
        _exit(1);
    work(0, 100);
    if (!trail_stop(NULL))
        _exit(1);
}

int main(int argc, char **argv)
{
    uint64_t task = trail_task_begin(0, "job");
    work(task, 1);
    if (argc > 1)
        own_trace(argv[1]);
    work(task, 2);
    /* Ends a region that is not the innermost one: a reader that expects nesting would give up. */
    trail_region_begin(task, "outer");
    trail_region_begin(task, "inner");
    trail_region_end(task, "outer");
    trail_region_end(task, "inner");
    trail_log_fields(task, "typed", trail_field_int("n", -5), trail_field_double("x", 0.25));
    trail_task_end(task);
    return 0;
}
