/* Walks of copied stacks (stack_copy.h) by frame pointers, as on machines without unwind tables and
 * in files without them. */
#include <stdint.h>

#include "../lib/unit.h"
#include "collect/stack_copy.h"

#define WORD  sizeof(uint64_t)
#define STACK UINT64_C(0x7fff12340000) /* the original address of the copied words */
#define CODE  UINT64_C(0x555500001000)

/* Returns a return address as a function that signs it (pac-ret) saves it; unchanged on other
 * CPUs. */
static uint64_t signed_address(uint64_t pc, uint64_t sp)
{
#if defined(__aarch64__)
    register uint64_t value __asm__("x17") = pc;
    register uint64_t modifier __asm__("x16") = sp;
    __asm__("hint 8" : "+r"(value) : "r"(modifier)); /* pacia1716 */
    return value;
#else
    (void)sp;
    return pc;
#endif
}

/* One page is the code of a missing file, and so has no tables. */
static const trail_module *find_code(void *context, uint64_t pc)
{
    return pc >= CODE && pc < CODE + 4096 ? context : NULL;
}

TEST(test_signed)
{
    trail_module module = {.path = {"/nowhere/at/all", 15}, .bias = 0};
    /* Two frames: the caller's frame pointer, and the return address above it. */
    const uint64_t stack[] = {
        STACK + 2 * WORD,
        signed_address(CODE + 0x200, STACK + 2 * WORD),
        0,
        signed_address(CODE + 0x300, STACK + 4 * WORD),
    };
    const struct cpu_sample sample = {.pc = CODE + 0x100,
                                      .sp = STACK,
                                      .fp = STACK,
                                      .stack = (const uint8_t *)stack,
                                      .stack_size = sizeof stack};
    struct unwind_files files = {0};
    uint64_t pcs[8];
    assert_int_equal(stack_copy_walk(&files, &sample, find_code, &module, pcs, 8), 3);
    assert_int_equal(pcs[0], CODE + 0x101);
    assert_int_equal(pcs[1], CODE + 0x200);
    assert_int_equal(pcs[2], CODE + 0x300);
    unwind_files_free(&files);
}
