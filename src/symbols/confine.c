/* Confines a process by resource limits and a filter of system calls: see confine.h. */
#include "symbols/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Debug information of the largest programs fits in; so does a half of a large machine's memory. */
#define LEAST_BYTES ((uint64_t)4 << 30)

#ifdef __has_feature
#define FEATURE(name) __has_feature(name)
#else
#define FEATURE(name) 0
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || FEATURE(address_sanitizer) ||   \
    FEATURE(thread_sanitizer) || FEATURE(memory_sanitizer)
const bool confine_filters = false;
#else
const bool confine_filters = true;
#endif

#if defined __x86_64__
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define THIS_ARCH AUDIT_ARCH_AARCH64
#elif defined __s390x__
#define THIS_ARCH AUDIT_ARCH_S390X
#endif

/* MARK: Limits */

static void limit(__rlimit_resource_t resource, uint64_t most)
{
    struct rlimit now;
    if (getrlimit(resource, &now) == 0 && now.rlim_max > most)
        (void)setrlimit(resource, &(struct rlimit){most, most});
}

static uint64_t most_bytes(void)
{
    uint64_t half = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
    return half > LEAST_BYTES ? half : LEAST_BYTES;
}

/* MARK: System calls */

#ifdef THIS_ARCH

#define LOAD(field)                                                                                \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)
#define REFUSE(why)  ANSWER(SECCOMP_RET_ERRNO | (why))
/* Skips the next `skips` statements unless the value last loaded is equal to, above, or has any bit
 * of a constant. */
#define UNLESS_EQUAL(value, skips) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skips)
#define UNLESS_ABOVE(value, skips) BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, value, 0, skips)
#define UNLESS_ANY(bits, skips)    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, skips)
#define ALLOW(call)                UNLESS_EQUAL(SYS_##call, 1), ANSWER(SECCOMP_RET_ALLOW)

/* Loads the lower half of an argument. */
#define LOAD_ARGUMENT(i)                                                                           \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, args[i]) +          \
                                           (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))

/* A call that is not listed does not exist (ENOSYS): C libraries then use another one. */
static const struct sock_filter filter[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0),
    REFUSE(ENOSYS),
    LOAD(nr),
    /* memory */
    ALLOW(brk),
    ALLOW(futex),
    ALLOW(madvise),
    ALLOW(mmap),
    ALLOW(mprotect),
    ALLOW(mremap),
    ALLOW(munmap),
    /* files */
    ALLOW(close),
    ALLOW(faccessat),
    ALLOW(fstat),
    ALLOW(getcwd),
    ALLOW(lseek),
    ALLOW(newfstatat),
    ALLOW(pread64),
    ALLOW(read),
    ALLOW(readlinkat),
    ALLOW(statx),
#ifdef SYS_open
    ALLOW(access),
    ALLOW(lstat),
    ALLOW(poll),
    ALLOW(readlink),
    ALLOW(stat),
#endif
    /* oneself */
    ALLOW(clock_gettime),
    ALLOW(exit),
    ALLOW(exit_group),
    ALLOW(getegid),
    ALLOW(geteuid),
    ALLOW(getgid),
    ALLOW(getpid),
    ALLOW(getrandom),
    ALLOW(getuid),
    ALLOW(ppoll),
    ALLOW(rt_sigprocmask),
    ALLOW(rt_sigreturn),
    ALLOW(sysinfo),
    UNLESS_EQUAL(SYS_openat, 4),
    LOAD_ARGUMENT(2),
    UNLESS_ANY(O_ACCMODE | O_CREAT | O_TRUNC, 1),
    REFUSE(EACCES),
    ANSWER(SECCOMP_RET_ALLOW),
    UNLESS_EQUAL(SYS_fcntl, 4),
    LOAD_ARGUMENT(1),
    UNLESS_ABOVE(F_GETFL, 1),
    REFUSE(EPERM),
    ANSWER(SECCOMP_RET_ALLOW),
    UNLESS_EQUAL(SYS_sendto, 4),
    LOAD_ARGUMENT(0),
    UNLESS_EQUAL(CONFINE_FD, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    REFUSE(EBADF),
    REFUSE(ENOSYS),
};

static void filter_calls(void)
{
    const struct sock_fprog program = {sizeof filter / sizeof *filter,
                                       (struct sock_filter *)filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#else

static void filter_calls(void)
{
}

#endif

/* MARK: All of it */

static bool keep_only(int fd)
{
    if (fd != CONFINE_FD && dup2(fd, CONFINE_FD) < 0)
        return false;
    if (syscall(SYS_close_range, CONFINE_FD + 1, ~0U, 0) == 0)
        return true;
    long most = sysconf(_SC_OPEN_MAX);
    for (int other = CONFINE_FD + 1; other < most; other++)
        (void)close(other);
    return true;
}

bool confine(int fd)
{
    const char *servers = getenv("DEBUGINFOD_URLS");
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    (void)prctl(PR_SET_NAME, "trail-symbols");
    limit(RLIMIT_CORE, 0);
    if (!keep_only(fd))
        return false;
    if (!confine_filters)
        return true;
    limit(RLIMIT_DATA, most_bytes());
    if (servers && *servers)
        return true;
    limit(RLIMIT_FSIZE, 0);
    filter_calls();
    return true;
}
