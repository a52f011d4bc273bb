/* Return addresses as found on a stack. */
#pragma once

#include <stdint.h>

/* Returns a return address without the signature that arm64 may put into its upper bits. */
static inline uintptr_t pc_plain(uintptr_t pc)
{
#if defined(__aarch64__)
    register uintptr_t link __asm__("x30") = pc;
    __asm__("hint 7" : "+r"(link)); /* xpaclri; a no-op on CPUs without signatures */
    pc = link;
#endif
    return pc;
}
