/*
 * Finds the function that was called, from the call instruction: a function that jumps into another
 * one leaves no frame. The C library's sem_wait() does so, and distributions strip the names of its
 * inner functions.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/*
 * Returns the address of the function called by the instruction before a return address, also
 * through the procedure linkage table; 0: not known, as for a call through a register, and on
 * processors other than x86-64. The process need not be stopped.
 */
uint64_t called_function(pid_t pid, uint64_t return_address);
