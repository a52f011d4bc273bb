/* Stacks to switch between; context.c. */
#ifndef CONTEXT_H
#define CONTEXT_H

#include <stddef.h>
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

/* Where a stack was left. `low` and `size` bound it; `fiber` and `fake` are for sanitizers. */
struct context {
    void *sp;
    const void *low;
    size_t size;
    void *fiber, *fake;
#if !defined(__x86_64__) && !defined(__aarch64__)
    ucontext_t ucontext;
#endif
};

void context_of_thread(struct context *c);
/* When first switched to, `entry` is called on the stack; it must not return. */
void context_init(struct context *c, void *stack, size_t size, void (*entry)(void));
void context_fini(struct context *c);
void context_switch(struct context *from, struct context *to);
/* The same, for a stack that is never switched back to. */
_Noreturn void context_switch_for_good(struct context *from, struct context *to);
/* Must be called first on a new stack. */
void context_entered(struct context *c);

#endif
