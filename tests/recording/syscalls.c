/* System calls through syscall(), other than futexes, must behave as without a recorder. Exit
 * status 0 if they do. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void check_status(long pid, int status)
{
    int found;
    CHECK(pid > 0 && waitpid((pid_t)pid, &found, 0) == pid);
    CHECK(WIFEXITED(found) && WEXITSTATUS(found) == status);
}

static void simple(void)
{
    CHECK(syscall(SYS_getpid) == getpid());
    errno = 0;
    CHECK(syscall(SYS_close, -1) == -1 && errno == EBADF);
    errno = 77;
    CHECK(syscall(SYS_gettid) > 0 && errno == 77);
    CHECK(syscall(100000) == -1 && errno == ENOSYS);
}

/* A call with six arguments, where the last matters: a page of a file at an offset. */
static void six(void)
{
    char name[] = "/tmp/trail-six-XXXXXX";
    int fd = mkstemp(name);
    char *page;
    CHECK(fd >= 0 && unlink(name) == 0 && pwrite(fd, "six", 3, 4096) == 3);
    page = (char *)syscall(SYS_mmap, NULL, 4096L, PROT_READ, MAP_PRIVATE, fd, 4096L);
    CHECK(page != MAP_FAILED && memcmp(page, "six", 3) == 0);
    CHECK(munmap(page, 4096) == 0 && close(fd) == 0);
}

/* fork: the child has copies of the memory, and may use wrapped calls. */
static void forks(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int value = 1, ends[2];
    char byte = 'c';
    long pid;
    CHECK(pipe(ends) == 0);
    pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        /* NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): shows whether memory is shared */
        value = 2;
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        for (int i = 0; i < 1000; i++)
            usleep(1);
        _exit(write(ends[1], &byte, 1) == 1 ? 42 : 1);
    }
    CHECK(read(ends[0], &byte, 1) == 1 && byte == 'c');
    check_status(pid, 42);
    CHECK(value == 1);
}

#if defined(__x86_64__)
/* The child ends without touching the stack, which has the return address of syscall(). */
__asm__(".text\n"
        "vfork_and_exit:\n"
        "sub $8, %rsp\n"
        "mov $58, %edi\n"
        "call syscall@PLT\n"
        "test %rax, %rax\n"
        "jnz 1f\n"
        "mov $43, %edi\n"
        "mov $60, %eax\n"
        "syscall\n"
        "1: add $8, %rsp\n"
        "ret\n");
long vfork_and_exit(void);
#endif

static void vforks(void)
{
#if defined(__x86_64__)
    check_status(vfork_and_exit(), 43);
#endif
}

static int in_child(void *arg)
{
    *(volatile int *)arg = 5;
    return 44;
}

/* The child has its own stack and shares the parent's memory. */
static void clones(void)
{
    static char stack[65536] __attribute__((aligned(16)));
    static int value;
    long pid = clone(in_child, stack + sizeof stack, CLONE_VM | SIGCHLD, &value);
    /* qemu-user cannot share memory between processes (clone(2): CLONE_VM without CLONE_VFORK). */
    if (pid < 0 && errno == EINVAL && getenv("QEMU_LD_PREFIX"))
        return;
    check_status(pid, 44);
    CHECK(value == 5);
}

static void handle(int number)
{
    (void)number;
    CHECK(syscall(SYS_getppid) == getppid());
}

static void signals(void)
{
    struct sigaction action = {.sa_handler = handle};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1) == 0);
}

/* MARK: Futexes: results and errors, and waiters moved to another futex */

static uint32_t word, word2;
static int woken;

static void *wait_for_word(void *arg)
{
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0) == 0);
    __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
    return arg;
}

static void futexes(void)
{
    struct timespec soon = {0, 2000000};
    pthread_t threads[3];
    long moved = 0;
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 1, NULL, NULL, 0) == -1 && errno == EAGAIN);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &soon, NULL, 0) == -1 && errno == ETIMEDOUT);
    CHECK(syscall(SYS_futex, &word, 99, 0, NULL, NULL, 0) == -1 && errno == ENOSYS);
    CHECK(syscall(SYS_futex, NULL, FUTEX_WAKE, 1, NULL, NULL, 0) == -1 && errno == EFAULT);
    errno = 77;
    CHECK(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0 && errno == 77);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, wait_for_word, NULL) == 0);
    while (moved < 3) {
        long n = syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE, 0, (void *)3L, &word2, 0);
        CHECK(n >= 0);
        moved += n;
        usleep(1000);
    }
    CHECK(moved == 3 && woken == 0);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAKE, 9, NULL, NULL, 0) == 0);
    CHECK(syscall(SYS_futex, &word2, FUTEX_WAKE, 9, NULL, NULL, 0) == 3);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void)
{
    simple();
    six();
    forks();
    vforks();
    clones();
    signals();
    futexes();
    return 0;
}
