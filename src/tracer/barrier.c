/* The asymmetric barrier: see barrier.h. */
#include "tracer/barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool available;

bool barrier_init(void)
{
    available = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    return available;
}

void barrier_all_threads(void)
{
    /* Without membarrier every section has its own fence, with which this one pairs. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (available)
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
