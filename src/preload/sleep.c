/* Wrappers for calls that sleep. */
#include "preload/board.h"
#include "preload/call.h"

/* `interrupted` reads `result`: whether a signal ended the sleep. */
#define SLEEP_CALL(interrupted, ...)                                                               \
    struct unwind_start caller = CALLER();                                                         \
    struct brief_call call BRIEF = brief_begin(&caller, SHM_GROUP_SLEEP, SHM_SLEEP, 0, 0);         \
    __typeof__(__VA_ARGS__) result = BRIEF_RETURNED(__VA_ARGS__);                                  \
    if (UNLIKELY(interrupted) && call.open)                                                        \
        signals_interrupted(NULL);                                                                 \
    return result

#define SLEEP(...)        SLEEP_CALL(result < 0 && errno == EINTR, __VA_ARGS__)
#define SLEEP_ERROR(...)  SLEEP_CALL(result == EINTR, __VA_ARGS__)
#define SLEEP_REST(...)   SLEEP_CALL(result > 0, __VA_ARGS__)
#define SLEEP_THREAD(...) SLEEP_CALL(result == -1, __VA_ARGS__)

/* MARK: The wrappers in symbols.def */

#define SLEEPS WRAP
#include "preload/symbols.def"
