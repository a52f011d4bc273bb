/* Interprets functions of the kernel in a stack: waits and interrupts. */
#include "import/kernel_frames.h"

#include <string.h>

enum {
#define WAIT(name, ...) WAIT_##name,
#include "wire/waits.def"
    WAITS
};

/* The words that trail record uses for the same waits. */
static const struct import_wait waits[WAITS] = {
#define WAIT(name, group, kind, words, reason) [WAIT_##name] = {words, reason},
#include "wire/waits.def"
};

static const struct {
    const char *function;
    uint8_t wait;
} kernel_waits[] = {
#define KERNEL_WAIT(function, wait) {function, WAIT_##wait},
#include "import/kernel_waits.def"
};

/* How Linux enters interrupts, hard and soft, on x86 and arm64. */
static const char *const interrupts[] = {
    "asm_sysvec_*",     "sysvec_*",       "asm_common_interrupt",
    "common_interrupt", "handle_irq*",    "handle_softirqs",
    "__do_softirq",     "__irq_exit_rcu", "gic_handle_irq",
    "el1_interrupt",    "el0_interrupt",  "el1h_64_irq*",
    "el0t_64_irq*",     "do_IRQ",         "smp_apic_timer_interrupt",
};

static bool matches(const char *pattern, trail_string text)
{
    size_t size = strlen(pattern);
    if (pattern[size - 1] == '*')
        return text.size >= size - 1 && memcmp(text.data, pattern, size - 1) == 0;
    return text.size == size && memcmp(text.data, pattern, size) == 0;
}

static const struct import_wait *wait_of_function(trail_string function)
{
    for (size_t i = 0; i < sizeof kernel_waits / sizeof *kernel_waits; i++)
        if (matches(kernel_waits[i].function, function))
            return &waits[kernel_waits[i].wait];
    return NULL;
}

const struct import_wait *import_wait_of(const struct import_stack *stack)
{
    const struct import_wait *wait = NULL;
    for (size_t i = 0; stack && !wait && i < stack->count; i++)
        wait = wait_of_function(stack->frames[i].function);
    return wait;
}

bool import_is_in_interrupt(const struct import_stack *stack)
{
    for (size_t i = 0; stack && i < stack->count; i++)
        for (size_t k = 0; k < sizeof interrupts / sizeof *interrupts; k++)
            if (matches(interrupts[k], stack->frames[i].function))
                return true;
    return false;
}
