/*
 * Walks the call stacks of programs without frame pointers, from inside the program.
 *
 * On x86-64 a step outwards is one look-up: a table has for each program counter where its frame
 * ends and where the caller's frame pointer is saved. An entry that the table does not have yet is
 * read from the module's .eh_frame (unwind_cfi.h), once. On arm64 frames are chained by frame
 * pointers; on other machines only the first PC is known.
 *
 * While a function compiled with -fstack-clash-protection sets up a frame of more than a page, the
 * frame's end is in another register. A walk from a signal at that point ends there.
 *
 * Nothing here allocates, locks or keeps per-thread state, so a thread's first stack costs no more
 * than any other. With glibc 2.35 or later all functions may be called in signal handlers. With
 * older ones a PC's first look-up calls dl_iterate_phdr, which takes a lock of the loader for a
 * moment.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "base/pc.h"

/* Machines on which the rules are read from .eh_frame. */
#if defined(__x86_64__) && defined(__LP64__)
#define UNWIND_HAS_TABLES 1
#else
#define UNWIND_HAS_TABLES 0
#endif

/*
 * Where a walk begins: the registers of a frame as they are when the function that it called has
 * returned. A PC is a return address: the call is the instruction before it. For an interrupted
 * thread, whose PC is the instruction itself, it is the PC plus one; unwind_stack returns the PCs
 * below a signal's frame in the same way.
 */
struct unwind_start {
    uintptr_t pc, sp, fp;
};

/*
 * Writes up to max PCs, innermost first, beginning with start->pc; returns their number. Nothing
 * outside [start->sp, stack_end), the rest of the stack, is read, whatever the registers and the
 * stack hold: so start->sp must lie on the stack that ends there (see unwind_end). If stack_end is
 * 0, start->pc is the only PC. A walk ends at the outermost frame, at a frame without unwind
 * tables, and where it would leave the stack, as below a handler on an alternate stack.
 */
size_t unwind_stack(const struct unwind_start *start, uintptr_t stack_end, uintptr_t *pcs,
                    size_t max);

/*
 * Forgets all rules and frees their memory. Call it after dlclose, because other code may be mapped
 * at the same addresses. Other threads may walk at the same time. Takes about 30 us.
 */
void unwind_forget(void);

/*
 * Returns the stack_end for a walk from sp by a thread whose stack is [low, high). A coroutine or
 * signal handler may run on another stack with unknown bounds, of which only sp's page is certain
 * to be mapped.
 */
static inline uintptr_t unwind_end(uintptr_t sp, uintptr_t low, uintptr_t high)
{
    return sp >= low && sp < high ? high : (sp | (uintptr_t)4095) + 1;
}

/*
 * Returns the caller of the function whose __builtin_frame_address(0) is `frame`. Using that
 * builtin gives the function a frame pointer. The function must not have over-aligned locals, which
 * put padding between its frame and its caller's.
 */
__attribute__((always_inline)) static inline struct unwind_start unwind_caller_of(const void *frame)
{
    const uintptr_t *at = (const uintptr_t *)frame;
    return (struct unwind_start){pc_plain(at[1]), (uintptr_t)(at + 2), at[0]};
}

/* Returns the frame that a signal interrupted, from the third argument of its handler. */
static inline struct unwind_start unwind_interrupted(const void *context)
{
#if defined(__x86_64__)
    const greg_t *regs = ((const ucontext_t *)context)->uc_mcontext.gregs;
    return (struct unwind_start){(uintptr_t)regs[REG_RIP] + 1, (uintptr_t)regs[REG_RSP],
                                 (uintptr_t)regs[REG_RBP]};
#elif defined(__aarch64__)
    const mcontext_t *regs = &((const ucontext_t *)context)->uc_mcontext;
    return (struct unwind_start){regs->pc + 1, regs->sp, regs->regs[29]};
#else
    (void)context;
    return (struct unwind_start){0, 0, 0};
#endif
}
