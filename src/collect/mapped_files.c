/* Survives the truncation of mapped files: see mapped_files.h. */
#include "collect/mapped_files.h"

#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* Number of replaced pages: global because a signal handler has no other state. Written only by the
 * handler. */
static uint64_t cut;
static uintptr_t page_size;

/* Both calls are plain system calls, safe in a signal handler. */
static void fill_page(int number, siginfo_t *info, void *context)
{
    uintptr_t page = (uintptr_t)info->si_addr & ~(page_size - 1);
    (void)context;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the page's own address. */
    if (info->si_code == BUS_ADRERR &&
        mmap((void *)page, page_size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
        __atomic_fetch_add(&cut, 1, __ATOMIC_RELAXED);
    else
        (void)signal(number, SIG_DFL); /* the access faults again */
}

void mapped_files_guard(void)
{
    struct sigaction action = {.sa_sigaction = fill_page, .sa_flags = SA_SIGINFO};
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)sigaction(SIGBUS, &action, NULL);
}

uint64_t mapped_files_cut(void)
{
    return __atomic_load_n(&cut, __ATOMIC_RELAXED);
}
