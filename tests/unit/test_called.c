/* Which function a call went to: calls made by the compiler, and each form of linkage table by
 * hand. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "stuck/called.h"

#if defined(__x86_64__)
#define EXPECTED(address) ((uint64_t)(uintptr_t)(address))
#else
#define EXPECTED(address) UINT64_C(0)
#endif

static uint64_t called_before(const void *return_address)
{
    return called_function(getpid(), (uint64_t)(uintptr_t)return_address);
}

/* MARK: The compiler's */

static const void *returns_to;
static void (*volatile pointer)(void);

__attribute__((noinline)) static void callee(void)
{
    returns_to = __builtin_return_address(0);
}

TEST(a_direct_call)
{
    callee();
    assert_true(called_before(returns_to) == EXPECTED(callee));
}

TEST(a_call_through_a_register)
{
    pointer = callee;
    void (*volatile function)(void) = pointer;
    function();
    /* Whatever bytes precede it: no fault, and the result is a mapped address or none. */
    (void)called_before(returns_to);
    assert_true(called_function(getpid(), 0) == 0);
    assert_true(called_function(getpid(), 4) == 0);
}

/* MARK: By hand */

/* A call at 0 that returns to 5 or 6, and an entry of the linkage table at 16. */
static uint8_t code[64];
static const void *target = &returns_to;

static void put_distance(size_t at, const void *to)
{
    int32_t distance = (int32_t)((intptr_t)to - (intptr_t)(code + at + 4));
    memcpy(code + at, &distance, sizeof distance);
}

static void put_entry(const uint8_t *begin, size_t size)
{
    memset(code, 0x90, sizeof code);
    code[1] = 0xe8;
    put_distance(2, code + 16);
    memcpy(code + 16, begin, size);
    put_distance(16 + size, &target);
}

TEST(calls_through_the_linkage_table)
{
    put_entry((const uint8_t[]){0xff, 0x25}, 2);
    assert_true(called_before(code + 6) == EXPECTED(target));
    put_entry((const uint8_t[]){0xf2, 0xff, 0x25}, 3);
    assert_true(called_before(code + 6) == EXPECTED(target));
    put_entry((const uint8_t[]){0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25}, 6);
    assert_true(called_before(code + 6) == EXPECTED(target));
    put_entry((const uint8_t[]){0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25}, 7);
    assert_true(called_before(code + 6) == EXPECTED(target));
}

TEST(a_call_without_the_linkage_table)
{
    memset(code, 0x90, sizeof code);
    code[0] = 0xff;
    code[1] = 0x15;
    put_distance(2, &target);
    assert_true(called_before(code + 6) == EXPECTED(target));
}

TEST(no_call)
{
    memset(code, 0x90, sizeof code);
    assert_true(called_before(code + 6) == 0);
}
