/*
 * Jumps out of a wait: a signal handler that calls longjmp leaves the interrupted call without
 * running clean-ups. The C library hides the target of a jump, so every jump is taken to leave the
 * open call, even one that stays within the handler.
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
