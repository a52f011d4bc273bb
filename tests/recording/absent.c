/*
 * A thread that waits for a futex in memory that is not there and that only this process could
 * provide (userfaultfd(2)): a process that reads the memory from outside would block in the kernel.
 * Prints the TID, and "absent" after a byte of input. Exit status 77: not possible here.
 */
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE 65536

static char *memory;

static void *wait_there(void *unused)
{
    memory[SIZE / 2] = 0;
    printf("%ld\n", (long)syscall(SYS_gettid));
    fflush(stdout);
    (void)syscall(SYS_futex, memory + SIZE / 2, FUTEX_WAIT, 0, NULL);
    return unused;
}

int main(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    pthread_t thread;
    int fd = (int)syscall(SYS_userfaultfd, 0);
    memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register all = {.range = {(uintptr_t)memory, SIZE},
                                  .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (fd < 0 || memory == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) < 0 ||
        pthread_create(&thread, NULL, wait_there, NULL) != 0)
        return 77;
    (void)getchar();
    if (ioctl(fd, UFFDIO_REGISTER, &all) < 0 || madvise(memory, SIZE, MADV_DONTNEED) < 0)
        return 77;
    puts("absent");
    fflush(stdout);
    (void)getchar();
    return 0;
}
