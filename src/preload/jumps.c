/*
 * Jumps out of a wait: a signal handler that calls longjmp leaves the call that it interrupted, and no clean-up runs. The
 * target of the jump cannot be read, as the C library hides the address: every jump is taken to leave the call, and one
 * that stays within the handler is recorded as the call's end, too.
 */
#include "preload/call.h"

__attribute__((noreturn)) EXPORT void longjmp(jmp_buf to, int value)
{
    call_leave();
    REAL(longjmp)(to, value);
    __builtin_unreachable();
}

__attribute__((noreturn)) EXPORT void _longjmp(jmp_buf to, int value)
{
    call_leave();
    REAL(_longjmp)(to, value);
    __builtin_unreachable();
}

__attribute__((noreturn)) EXPORT void siglongjmp(sigjmp_buf to, int value)
{
    call_leave();
    REAL(siglongjmp)(to, value);
    __builtin_unreachable();
}

__attribute__((noreturn)) EXPORT void __longjmp_chk(jmp_buf to, int value)
{
    call_leave();
    REAL(__longjmp_chk)(to, value);
    __builtin_unreachable();
}
