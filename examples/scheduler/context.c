/*
 * Switches stacks: pushes the registers that the C ABI preserves over a call, exchanges the stack
 * pointer and pops the registers there. Without assembly for a machine, ucontext does the same with
 * two more system calls. Signal masks and floating point modes are not switched.
 *
 * The frame pointer of a new stack is 0, where a walk of the stack ends.
 */
#include "context.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define WITH_ASAN 1
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__)

/* void swap_stacks(void **save, void *load) */
void swap_stacks(void **save, void *load);
__asm__(".text\n"
        ".globl swap_stacks\n"
        ".hidden swap_stacks\n"
        ".type swap_stacks, @function\n"
        "swap_stacks:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size swap_stacks, .-swap_stacks\n");

/* From the low end: six registers, `entry` as return address, 0 as entry's return address. */
static void *first_frame(uint8_t *end, void (*entry)(void))
{
    uintptr_t *sp = (uintptr_t *)end - 8;
    for (int i = 0; i < 8; i++)
        sp[i] = 0;
    sp[6] = (uintptr_t)entry;
    return sp;
}

#elif defined(__aarch64__)

void swap_stacks(void **save, void *load);
__asm__(".text\n"
        ".globl swap_stacks\n"
        ".hidden swap_stacks\n"
        ".type swap_stacks, %function\n"
        "swap_stacks:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size swap_stacks, .-swap_stacks\n");

/* From the low end: twenty registers, of which x30 (the return address) is `entry`. */
static void *first_frame(uint8_t *end, void (*entry)(void))
{
    uintptr_t *sp = (uintptr_t *)end - 20;
    for (int i = 0; i < 20; i++)
        sp[i] = 0;
    sp[11] = (uintptr_t)entry;
    return sp;
}

#endif

void context_of_thread(struct context *c)
{
    pthread_attr_t attr;
    void *low;
    *c = (struct context){0};
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &low, &c->size) == 0)
            c->low = low;
        pthread_attr_destroy(&attr);
    }
#ifdef WITH_TSAN
    c->fiber = __tsan_get_current_fiber();
#endif
}

void context_init(struct context *c, void *stack, size_t size, void (*entry)(void))
{
    *c = (struct context){.low = stack, .size = size};
#if defined(__x86_64__) || defined(__aarch64__)
    c->sp = first_frame((uint8_t *)stack + size, entry);
#else
    if (getcontext(&c->ucontext) != 0)
        abort();
    c->ucontext.uc_stack.ss_sp = stack;
    c->ucontext.uc_stack.ss_size = size;
    makecontext(&c->ucontext, entry, 0);
#endif
#ifdef WITH_TSAN
    c->fiber = __tsan_create_fiber(0);
#endif
}

void context_fini(struct context *c)
{
#ifdef WITH_TSAN
    if (c->fiber)
        __tsan_destroy_fiber(c->fiber);
#endif
    c->fiber = NULL;
}

static void exchange(struct context *from, struct context *to)
{
#ifdef WITH_TSAN
    __tsan_switch_to_fiber(to->fiber, 0);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    swap_stacks(&from->sp, to->sp);
#else
    swapcontext(&from->ucontext, &to->ucontext);
#endif
}

void context_entered(struct context *c)
{
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(c->fake, NULL, NULL);
#else
    (void)c;
#endif
}

void context_switch(struct context *from, struct context *to)
{
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(&from->fake, to->low, to->size);
#endif
    exchange(from, to);
    context_entered(from);
}

void context_switch_for_good(struct context *from, struct context *to)
{
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(NULL, to->low, to->size);
#endif
    exchange(from, to);
    abort();
}
