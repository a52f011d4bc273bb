/*
 * Call stacks of programs without frame pointers, for a library that lives in them.
 *
 * On x86-64 a step outwards is one look-up: a table knows for each program counter where its frame
 * ends and where the caller's frame pointer lies. What the table does not know yet is read from the
 * module's .eh_frame (unwind_cfi.h), once. On arm64 frames are chained by frame pointers; elsewhere
 * there is only the first PC.
 *
 * Nothing here allocates, locks or keeps anything of a thread: a thread's first stack costs what
 * any other does. With glibc 2.35 or later all of it may be called in signal handlers. With older
 * ones a PC's first look-up asks dl_iterate_phdr, which takes a lock of the loader for a moment.
 */
#ifndef TRAIL_SHM_UNWIND_H
#define TRAIL_SHM_UNWIND_H

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "base/pc.h"

/*
 * Where a walk begins: the registers of a frame as they are when what it called has returned. A PC
 * is a return address: the instruction that is executed is the one before it. Of an interrupted
 * thread, whose PC is the very instruction, it is the PC and one; unwind_stack gives the PCs below
 * a signal's frame in the same way.
 */
struct unwind_start {
    uintptr_t pc, sp, fp;
};

/*
 * Writes up to max PCs, innermost first, beginning with start->pc; returns how many. [start->sp,
 * stack_end) is the rest of the stack: nothing else is read, whatever the registers and the stack
 * hold. So start->sp must be on the stack that the end is of: unwind_end sees to that. With 0 there
 * is start->pc alone. A walk ends at the outermost frame, where nothing tells the way on, and where
 * the stack is left, as below a handler on a stack of its own.
 */
size_t unwind_stack(const struct unwind_start *start, uintptr_t stack_end, uintptr_t *pcs,
                    size_t max);

/*
 * To be called after dlclose: other code may come to lie where code was. Walks by other threads go
 * on meanwhile. Costs some 30 us.
 */
void unwind_forget(void);

/*
 * The end for a walk from sp by a thread whose stack is [low, high). A coroutine, or a signal's
 * handler, may have a stack that nobody knows the bounds of, anywhere, and its frames need not end
 * where it does. What is certain to be there is the page that sp points into.
 */
static inline uintptr_t unwind_end(uintptr_t sp, uintptr_t low, uintptr_t high)
{
    return sp >= low && sp < high ? high : (sp | (uintptr_t)4095) + 1;
}

/*
 * The caller of the function whose __builtin_frame_address(0) this is. Asking for that address
 * gives the function a frame pointer; it must not have over-aligned locals, which put something
 * between its frame and its caller's.
 */
__attribute__((always_inline)) static inline struct unwind_start unwind_caller_of(const void *frame)
{
    const uintptr_t *at = (const uintptr_t *)frame;
    return (struct unwind_start){pc_plain(at[1]), (uintptr_t)(at + 2), at[0]};
}

/* What a signal interrupted, from the third argument of its handler. */
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

#endif
