/*
 * Any bytes as a module's CFI: finding a rule ends, reads nothing outside, is deterministic, and returns
 * a rule that the unwinder knows. The input begins with the offsets of the header and of the PC in the
 * bytes that follow.
 */
#include "fuzz.h"
#include "host/unwind_cfi.h"

#define PREFIX 8

static void expect_possible(const struct cfi_rule *rule)
{
    FUZZ_HOLDS(rule->kind <= CFI_UNKNOWN);
    FUZZ_HOLDS(rule->base <= CFI_FP && rule->fp <= CFI_FP_LOST);
    FUZZ_HOLDS(rule->indirect || rule->inner == 0);
}

static bool is_same(const struct cfi_rule *a, const struct cfi_rule *b)
{
    return a->kind == b->kind && a->base == b->base && a->fp == b->fp &&
           a->indirect == b->indirect && a->offset == b->offset && a->inner == b->inner &&
           a->fp_offset == b->fp_offset;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cfi_module module = {.ranges = 1};
    struct cfi_rule rule, again;
    uint32_t header;
    int32_t pc;
    uintptr_t at;
    uint8_t *tables;
    if (size < PREFIX)
        return 0;
    memcpy(&header, data, sizeof header);
    memcpy(&pc, data + sizeof header, sizeof pc);
    size -= PREFIX;
    /* Exactly this size, so that a sanitizer detects reads past the end. */
    tables = malloc(size ? size : 1);
    FUZZ_HOLDS(tables);
    memcpy(tables, data + PREFIX, size);
    header = size ? header % (uint32_t)size : 0;
    module.readable[0] = (struct cfi_range){(uintptr_t)tables, (uintptr_t)tables + size};
    module.header = (struct cfi_range){(uintptr_t)tables + header, (uintptr_t)tables + size};
    at = (uintptr_t)tables + (uintptr_t)(intptr_t)pc;
    rule = cfi_find(&module, at);
    again = cfi_find(&module, at);
    expect_possible(&rule);
    FUZZ_HOLDS(is_same(&rule, &again));
    free(tables);
    return 0;
}
