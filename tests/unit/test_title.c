/*
 * The title and CPU time of a recorded process belong to that process: by the time they are read,
 * its PID may be another process's. The PID is that of this test; the pidfd decides whether it is
 * the recorded process.
 */
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "collect/recorder_claims.h"

/* MARK: The symbols of modules, which the recorder reads but no title has */

struct modules *modules_open(const char *const *folders, size_t count, bool quick, bool apart)
{
    (void)folders, (void)count, (void)quick, (void)apart;
    return NULL;
}

void modules_close(struct modules *modules)
{
    (void)modules;
}

size_t modules_resolve(void *context, const trail_module *module, uint64_t address,
                       const trail_symbol **symbols)
{
    (void)context, (void)module, (void)address, (void)symbols;
    return 0;
}

bool modules_object(void *context, const trail_module *module, uint64_t address, char *text,
                    size_t size)
{
    (void)context, (void)module, (void)address, (void)text, (void)size;
    return false;
}

size_t modules_guards(void *context, const trail_module *module, uint64_t address,
                      struct guard *guards, size_t max)
{
    (void)context;
    (void)module;
    (void)address;
    (void)guards;
    (void)max;
    return 0;
}

/* MARK: Tests */

/* All processes share one trace: only then does a process have a label. */
static const struct recorder all_in_one = {.options.children = true};

static int pidfd_of(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static struct recorded this_process(int pidfd)
{
    pid_t pid = getpid();
    return (struct recorded){.pid = pid,
                             .number = pid,
                             .process.pid = pid,
                             .pidfd = pidfd,
                             .title = "before",
                             .label = "before (1)",
                             .cpu_ns = -1};
}

static void check_is_looked_at(struct recorded process)
{
    recorder_process_look_at(&all_in_one, &process);
    assert_true(process.titled);
    assert_non_null(strstr(process.title, "test_title"));
    assert_non_null(strstr(process.label, "test_title ("));
    assert_true(process.cpu_ns >= 0);
}

TEST(of_the_process_they_are_read)
{
    int pidfd = pidfd_of(getpid());
    if (pidfd < 0)
        skip();
    check_is_looked_at(this_process(pidfd));
    (void)close(pidfd);
}

TEST(without_a_pidfd_the_pid_is_all_that_is_known)
{
    check_is_looked_at(this_process(-1));
}

TEST(of_another_with_its_pid_they_are_not)
{
    int status, pidfd;
    struct recorded process;
    pid_t ended = fork();
    if (ended == 0)
        _exit(0);
    assert_true(ended > 0);
    pidfd = pidfd_of(ended);
    assert_int_equal(waitpid(ended, &status, 0), ended);
    if (pidfd < 0)
        skip();
    process = this_process(pidfd);
    recorder_process_look_at(&all_in_one, &process);
    assert_false(process.titled);
    assert_string_equal(process.title, "before");
    assert_string_equal(process.label, "before (1)");
    assert_int_equal(process.cpu_ns, -1);
    (void)close(pidfd);
}

/* It was not found in the table of processes. */
TEST(of_an_unknown_process_they_are_not)
{
    struct recorded process = this_process(-1);
    process.process.pid = 0;
    recorder_process_look_at(&all_in_one, &process);
    assert_string_equal(process.title, "before");
    assert_int_equal(process.cpu_ns, -1);
}
