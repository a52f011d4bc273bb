#include "commands/machine.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/small_file.h"
#include "collect/switches.h"
#include "host/clock.h"
#include "inspect/preload_path.h"

/* MARK: The recorder */

static void add_preload(struct facts *facts)
{
    struct preload preload;
    if (preload_path(&preload))
        fact(facts, FACT_OK, "recorder", NULL, "%s", preload.path);
    else
        fact(facts, FACT_PROBLEM, "recorder", NULL, "%s", preload.wrong);
}

static void add_system(struct facts *facts)
{
    struct utsname system;
    cpu_set_t cpus;
    int usable = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (uname(&system) < 0)
        return;
    if (usable > 0 && usable < online)
        fact(facts, FACT_OK, "system", NULL, "%s %s, %s; %d of %ld CPUs may be used",
             system.sysname, system.release, system.machine, usable, online);
    else
        fact(facts, FACT_OK, "system", NULL, "%s %s, %s; CPUs: %ld", system.sysname, system.release,
             system.machine, online);
}

static void add_libc(struct facts *facts)
{
    const char *version = gnu_get_libc_version();
    /* Programs use the system's C library, not the one that is linked in. */
    if (TRAIL_IS_STATIC)
        return;
    if (dlsym(RTLD_DEFAULT, "_dl_find_object"))
        fact(facts, FACT_OK, "libc", NULL, "glibc %s, with _dl_find_object", version);
    else
        fact(facts, FACT_NOTE, "libc", "a system with glibc 2.35 or later",
             "glibc %s has no _dl_find_object: stacks take the loader's lock", version);
}

/* MARK: Context switches */

void machine_switches_fact(struct facts *facts)
{
    static const char what[] = "context switches";
    struct switches_refusal refusal;
    long paranoid = 0;
    bool known = small_file_number("/proc/sys/kernel/perf_event_paranoid", &paranoid);
    int reason = switches_try();
    if (reason == 0 && known) {
        fact(facts, FACT_OK, what, NULL,
             "the kernel reports them (perf_event_paranoid is %ld): running and ready are "
             "distinguished",
             paranoid);
    } else if (reason == 0) {
        fact(facts, FACT_OK, what, NULL, "the kernel reports them");
    } else {
        switches_explain(reason, &refusal);
        fact(facts, FACT_NOTE, what, refusal.fix, "%s: when threads were ready is inferred",
             refusal.why);
    }
}

/* MARK: Sharing memory */

/* Tests in a child whether it can open a descriptor of its parent through /proc. Returns its errno,
 * or 0. */
static int try_parent(int fd)
{
    char path[64];
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)parent, fd);
        int again = open(path, O_RDWR | O_CLOEXEC);
        _exit(again >= 0 ? 0 : errno);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return errno;
    if (child < 0)
        return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static void add_memory(struct facts *facts)
{
    int fd = memfd_create("trail-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        fact(facts, FACT_PROBLEM, "shared memory", "let the seccomp profile allow memfd_create",
             "memfd_create: %s", strerror(errno));
        return;
    }
    void *page = MAP_FAILED;
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    int why = ftruncate(fd, (off_t)size) < 0 ? errno : 0;
    if (why == 0)
        page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (why == 0 && page == MAP_FAILED)
        why = errno;
    if (page != MAP_FAILED)
        (void)munmap(page, size);
    if (why != 0)
        fact(facts, FACT_PROBLEM, "shared memory", "raise the limits of memory (ulimit -v -f)",
             "it cannot be mapped: %s", strerror(why));
    else
        fact(facts, FACT_OK, "shared memory", NULL, "memfd_create works");

    if (access("/proc/self/fd", F_OK) < 0)
        fact(facts, FACT_PROBLEM, "/proc", "mount -t proc proc /proc", "it is not mounted");
    else if ((why = try_parent(fd)) != 0)
        fact(facts, FACT_NOTE, "/proc", "mount /proc without hidepid",
             "a child may not open its parent's /proc/PID/fd (%s): programs that close all "
             "descriptors before they exec are lost there",
             strerror(why));
    else
        fact(facts, FACT_OK, "/proc", NULL, "mounted; a child may open its parent's /proc/PID/fd");
    (void)close(fd);
}

static void add_shm_folder(struct facts *facts)
{
    int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        fact(facts, FACT_OK, "/dev/shm", NULL, "writable, which trail env requires");
    else
        fact(facts, FACT_NOTE, "/dev/shm", "trail env --shm=FILE, on a file system in memory",
             "no file can be created there, but trail env needs one: %s", strerror(errno));
    if (fd >= 0)
        (void)close(fd);
}

static void add_yama(struct facts *facts)
{
    long scope = 0;
    (void)small_file_number("/proc/sys/kernel/yama/ptrace_scope", &scope);
    if (scope == 0 || (scope < 3 && geteuid() == 0))
        fact(facts, FACT_OK, "running programs", NULL,
             "trail record -p and trail stuck may join %s processes",
             geteuid() == 0 ? "all users'" : "this user's");
    else
        fact(facts, FACT_NOTE, "running programs",
             scope < 3 ? "as root: sysctl kernel.yama.ptrace_scope=0; or run trail as root"
                       : "a restart of the machine with kernel.yama.ptrace_scope=0",
             "trail record -p and trail stuck may join no process: ptrace_scope is %ld", scope);
}

/* MARK: Clock */

static void add_clock(struct facts *facts)
{
    char source[64];
    bool known = small_file_text(
        source, sizeof source, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    bool distrusted = known && (strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0 ||
                                strcmp(source, "jiffies") == 0);
    if (!clock_counter_is_invariant())
        fact(facts, FACT_NOTE, "clock", NULL,
             "the processor's counter is not invariant: times come from clock_gettime, at some "
             "20 ns each");
    else if (distrusted)
        fact(facts, FACT_NOTE, "clock", "see dmesg for why the kernel stopped using the TSC",
             "the processor calls its counter invariant, but the kernel uses %s", source);
    else
        fact(facts, FACT_OK, "clock", NULL, "the processor's counter is invariant%s%s",
             known ? "; the kernel's clock is " : "", known ? source : "");
}

/* MARK: Surroundings */

static void add_environment(struct facts *facts)
{
    const char *preload = getenv("LD_PRELOAD"), *urls = getenv("DEBUGINFOD_URLS");
    char everywhere[256];
    if (preload && *preload)
        fact(facts, FACT_NOTE, "LD_PRELOAD", NULL,
             "in use, and loaded after the recorder: calls that these libraries make are recorded, "
             "those that they handle themselves are not: %s",
             preload);
    else
        fact(facts, FACT_OK, "LD_PRELOAD", NULL, "not in use");
    if (small_file_text(everywhere, sizeof everywhere, "/etc/ld.so.preload") && *everywhere)
        fact(facts, FACT_NOTE, "/etc/ld.so.preload", NULL,
             "loaded into every program, after the recorder: %s", everywhere);
    if (TRAIL_IS_STATIC)
        fact(facts, FACT_OK, "debuginfod", NULL, "a static trail fetches nothing from the network");
    else if (urls && *urls)
        fact(facts, FACT_OK, "debuginfod", NULL, "missing line numbers are fetched from %s", urls);
    else
        fact(facts, FACT_OK, "debuginfod", NULL,
             "DEBUGINFOD_URLS is not set: nothing is fetched from the network");
}

void machine_facts(struct facts *facts)
{
    add_system(facts);
    add_preload(facts);
    add_libc(facts);
    add_clock(facts);
    add_memory(facts);
    add_shm_folder(facts);
    add_yama(facts);
    machine_switches_fact(facts);
    add_environment(facts);
}
