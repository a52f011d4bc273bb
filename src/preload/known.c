/* Remembers the locks whose addresses are in records: see known.h. */
#include "preload/known.h"

struct known known;

void known_add(const volatile void *lock)
{
    uint32_t bit = known_bit((uintptr_t)lock);
    uintptr_t nobody;
    if (known_has_line((uintptr_t)lock)) {
        for (size_t i = 0; i < KNOWN_LOCKS; i++) {
            if (__atomic_load_n(&known.locks[i], __ATOMIC_RELAXED) == (uintptr_t)lock)
                return;
        }
    }
    (void)__atomic_or_fetch(&known.lines[bit / 64], UINT64_C(1) << bit % 64, __ATOMIC_RELAXED);
    for (size_t i = 0; i < KNOWN_LOCKS; i++) {
        nobody = 0;
        if (__atomic_compare_exchange_n(&known.locks[i], &nobody, (uintptr_t)lock, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            break;
    }
    __atomic_store_n(&known.used, 1, __ATOMIC_RELAXED);
}

void known_forget(uintptr_t low, uintptr_t high)
{
    struct shm_record record = {.kind = SHM_FORGOTTEN};
    int old_errno = errno;
    for (size_t i = 0; i < KNOWN_LOCKS; i++) {
        uintptr_t lock = __atomic_load_n(&known.locks[i], __ATOMIC_RELAXED);
        if (lock < low || lock >= high ||
            !__atomic_compare_exchange_n(&known.locks[i], &lock, 0, false, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED))
            continue;
        record.object = lock;
        if (preload.area && self_has_slot())
            record_now(&record);
    }
    errno = old_errno;
}
