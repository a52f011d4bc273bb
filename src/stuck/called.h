/*
 * Which function a call was made to, by its instruction: a function that is left by a jump into
 * another one has no frame. sem_wait() of the C library is left so, and a distribution's library
 * has no names of its inner functions.
 */
#ifndef TRAIL_STUCK_CALLED_H
#define TRAIL_STUCK_CALLED_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Returns the address of the function that the call before a return address was made to, also
 * through the procedure linkage table; 0: not known, as for a call through a register, and on other
 * processors than x86-64. The process need not be stopped.
 */
uint64_t called_function(pid_t pid, uint64_t return_address);

#endif
