/*
 * Wraps prctl(2), with which a thread changes its name, gives up the CPU's counter, or gives up
 * system calls (seccomp(2)), and the same through syscall(2).
 */
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

#include "preload/preload.h"

bool preload_confined;

/* Whether the call makes reading the CPU's counter raise a signal. */
static bool takes_clock(int option, unsigned long what)
{
    return (option == PR_SET_SECCOMP && what == SECCOMP_MODE_STRICT) ||
           (option == PR_SET_TSC && what == PR_TSC_SIGSEGV);
}

/* What a call has changed in advance, to be undone if it fails. */
struct giving_up {
    bool confined, over;
};

/* A child of vfork, which will execute another program, must not change its parent's memory. */
static struct giving_up give_up(bool confines, bool clock)
{
    const struct giving_up given = {confines && !preload_confined && self.vforks == 0,
                                    clock && self_has_slot()};
    if (given.confined)
        __atomic_store_n(&preload_confined, true, __ATOMIC_RELAXED);
    if (given.over)
        self_end();
    return given;
}

/* If the clock remains, the thread is recorded again, as a new one. */
static void take_back(const struct giving_up *given)
{
    if (given->confined)
        __atomic_store_n(&preload_confined, false, __ATOMIC_RELAXED);
    if (given->over)
        self.over = false;
}

EXPORT int prctl(int option, ...)
{
    unsigned long arguments[4];
    va_list list;
    /* The C library, too, reads four arguments, however many were passed. */
    va_start(list, option);
    for (size_t i = 0; i < 4; i++)
        arguments[i] = va_arg(list, unsigned long);
    va_end(list);
    struct giving_up given = give_up(option == PR_SET_SECCOMP, takes_clock(option, arguments[0]));
    int status = REAL(prctl)(option, arguments[0], arguments[1], arguments[2], arguments[3]);
    /* The kernel has read the name there. */
    if (option == PR_SET_NAME && status == 0 && preload.area && self_recorded())
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): the argument's type depends on the option. */
        record_name(0, (const char *)arguments[0]);
    if (status != 0)
        take_back(&given);
    return status;
}

/* MARK: Through syscall */

/* Called instead of syscall(SYS_prctl, ...): see the filter in futex.c. */
long preload_prctl_call(long number, int option, unsigned long a, unsigned long b, unsigned long c,
                        unsigned long d) __attribute__((visibility("hidden")));

long preload_prctl_call(long number, int option, unsigned long a, unsigned long b, unsigned long c,
                        unsigned long d)
{
    (void)number;
    return prctl(option, a, b, c, d);
}

/* Called instead of syscall(SYS_seccomp, ...). */
long preload_seccomp_call(long number, unsigned operation, unsigned flags, void *argument)
    __attribute__((visibility("hidden")));

long preload_seccomp_call(long number, unsigned operation, unsigned flags, void *argument)
{
    bool strict = operation == SECCOMP_SET_MODE_STRICT;
    struct giving_up given = give_up(strict || operation == SECCOMP_SET_MODE_FILTER, strict);
    long status = REAL(syscall)(number, operation, flags, argument);
    if (status != 0)
        take_back(&given);
    return status;
}
