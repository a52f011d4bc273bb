/*
 * The numbers in place of PCs of callers of inlined functions (write/naming.h), for names whose
 * hashes were chosen to be equal.
 */
#include "write/naming.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/unit.h"
#include "base/hash.h"
#include "base/order.h"

#define CALLERS 2000
#define START   0x1000

static size_t mixed;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for what stands in for another */
uint64_t __real_hash_mix(uint64_t hash, uint64_t word);
uint64_t __wrap_hash_mix(uint64_t hash, uint64_t word);
uint64_t __wrap_hash_mix(uint64_t hash, uint64_t word)
{
    mixed++;
    return __real_hash_mix(hash, word);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/*
 * Two words of which the second makes the hash 0: (hash ^ word) is 0, whatever it is multiplied by.
 */
struct name {
    uint64_t begin, end;
};

static size_t resolve(void *context, const trail_module *module, uint64_t address,
                      const trail_symbol **symbols)
{
    static struct name name;
    static trail_symbol made[] = {{{"leaf", 4}, {"leaf.c", 6}, 1}, {{NULL, 0}, {"", 0}, 0}};
    (void)context;
    (void)module;
    name.begin = UINT64_C(0x0101010101010101) + address;
    name.end = __real_hash_mix(sizeof name, name.begin);
    made[1].function = (trail_string){(const char *)&name, sizeof name};
    *symbols = made;
    return 2;
}

static uint64_t caller_of(struct naming *naming, size_t i)
{
    struct naming_frame to[NAMING_MAX_FRAMES], frame = {.pc = START + 1 + i};
    trail_error err;
    assert_int_equal(naming_stack(naming, &frame, 1, to, &err), 2);
    return to[1].pc;
}

static void begin(struct naming *naming)
{
    static const char module[] = "trail.module start=0x1000 end=0x9000 bias=0x0 build-id=- path=/x";
    naming_begin(naming);
    assert_true(naming_string(naming, 1, module, strlen(module)));
}

static int number_order(const void *a, const void *b)
{
    return ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

TEST(callers_of_equal_hash_have_numbers_of_their_own_found_at_once)
{
    static uint64_t first[CALLERS], sorted[CALLERS];
    const trail_symbolize_options options = {.resolve = resolve};
    struct naming naming = {0};
    naming_init(&naming, &options, 1 << 16);
    begin(&naming);
    for (size_t i = 0; i < CALLERS; i++)
        first[i] = caller_of(&naming, i);
    assert_true(mixed < (size_t)10 * CALLERS);
    memcpy(sorted, first, sizeof first);
    qsort(sorted, CALLERS, sizeof *sorted, number_order);
    /* Neighbours would be a run, which others would have to walk over. */
    for (size_t i = 1; i < CALLERS; i++)
        assert_true(sorted[i] - sorted[i - 1] > 1);
    /* The next generation has them in another order. */
    begin(&naming);
    for (size_t i = CALLERS; i-- > 0;)
        assert_int_equal(caller_of(&naming, i), first[i]);
    naming_free(&naming);
}
