/*
 * Jumps out of a wait: a signal handler that calls longjmp leaves the call that it interrupted, and no clean-up runs. The
 * target of the jump cannot be read, as the C library hides the address: every jump is taken to leave the call, and one
 * that stays within the handler is recorded as the call's end, too.
 */
#include "preload/call.h"

#define JUMP(name, buffer)                                                                         \
    __attribute__((noreturn)) EXPORT void name(buffer to, int value)                               \
    {                                                                                              \
        call_leave();                                                                              \
        REAL(name)(to, value);                                                                     \
        __builtin_unreachable();                                                                   \
    }

JUMP(longjmp, jmp_buf)
JUMP(_longjmp, jmp_buf)
JUMP(siglongjmp, sigjmp_buf)
JUMP(__longjmp_chk, jmp_buf)
