/* See called.h. Encodings: AMD64 Architecture Programmer's Manual, volume 3; linkage table: System
 * V ABI for AMD64. */
#include "stuck/called.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/present_memory.h"

#if defined(__x86_64__)

static bool copy(pid_t pid, uint64_t at, void *to, size_t size)
{
    return present_memory(pid, at, size) == size &&
           memory_of_other(pid, at, to, size) == (ssize_t)size;
}

/* Returns the target of a four-byte distance, counted from the end of the instruction. */
static uint64_t relative(uint64_t end, const uint8_t *distance)
{
    int32_t by;
    memcpy(&by, distance, sizeof by);
    return end + (uint64_t)(int64_t)by;
}

static uint64_t pointer_at(pid_t pid, uint64_t at)
{
    uint64_t pointer;
    return copy(pid, at, &pointer, sizeof pointer) ? pointer : 0;
}

/* Returns the target of an entry of the linkage table: [endbr64] [bnd] jmp *DISTANCE(%rip). `at` if
 * it is not such an entry. */
static uint64_t through_linkage(pid_t pid, uint64_t at)
{
    static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa};
    uint8_t code[16];
    if (!copy(pid, at, code, sizeof code))
        return 0;
    size_t i = memcmp(code, landing, sizeof landing) == 0 ? sizeof landing : 0;
    i += code[i] == 0xf2;
    if (code[i] != 0xff || code[i + 1] != 0x25)
        return at;
    return pointer_at(pid, relative(at + i + 6, code + i + 2));
}

uint64_t called_function(pid_t pid, uint64_t return_address)
{
    uint8_t code[6];
    if (!copy(pid, return_address - sizeof code, code, sizeof code))
        return 0;
    if (code[0] == 0xff && code[1] == 0x15) /* call *DISTANCE(%rip) */
        return pointer_at(pid, relative(return_address, code + 2));
    if (code[1] == 0xe8) /* call DISTANCE */
        return through_linkage(pid, relative(return_address, code + 2));
    return 0;
}

#else

uint64_t called_function(pid_t pid, uint64_t return_address)
{
    (void)pid;
    (void)return_address;
    return 0;
}

#endif
