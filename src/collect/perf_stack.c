/* See perf_stack.h. All numbers come from the kernel, and are checked against the record's size. */
#include "collect/perf_stack.h"

#include <string.h>

/* The kernel's numbers of the registers that a walk needs, in record order. */
#if defined(__x86_64__)
enum { REG_FP = 6, REG_STACK = 7, REG_PC = 8, REG_ABI_64 = PERF_SAMPLE_REGS_ABI_64 };
#elif defined(__aarch64__)
enum { REG_FP = 29, REG_STACK = 31, REG_PC = 32, REG_ABI_64 = PERF_SAMPLE_REGS_ABI_64 };
#else
enum { REG_FP = 0, REG_STACK = 1, REG_PC = 2, REG_ABI_64 = -1 };
#endif

void perf_stack_want(struct perf_event_attr *attr, uint32_t size)
{
    attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attr->sample_regs_user =
        UINT64_C(1) << REG_FP | UINT64_C(1) << REG_STACK | UINT64_C(1) << REG_PC;
    attr->sample_stack_user = size;
}

bool perf_stack_read(const uint8_t *at, size_t size, struct cpu_sample *sample)
{
    uint64_t words[5], filled;
    if (size < sizeof words)
        return false;
    memcpy(words, at, sizeof words);
    if (words[0] != (uint64_t)REG_ABI_64)
        return false;
    sample->fp = words[1];
    sample->sp = words[2];
    sample->pc = words[3];
    sample->stack = at + sizeof words;
    sample->stack_size = 0;
    size -= sizeof words;
    if (words[4] == 0)
        return true;
    if (size < sizeof filled || words[4] > size - sizeof filled)
        return false;
    memcpy(&filled, sample->stack + words[4], sizeof filled);
    sample->stack_size = (size_t)(filled < words[4] ? filled : words[4]);
    return true;
}
