/*
 * The lock of a stream of stdio, which flockfile(3) takes for a while and most functions for
 * themselves. It is glibc's _IO_lock_t, which no header describes.
 */
#pragma once

#include "preload/preload.h"

struct stream_lock {
    int word; /* 0: free; 2: threads wait */
    int count;
    void *owner; /* pthread_self() */
};

/* Returns NULL if only one thread uses the stream. */
ALWAYS struct stream_lock *stream_lock_of(const FILE *file)
{
    return (struct stream_lock *)file->_lock;
}

ALWAYS bool stream_is_own(const struct stream_lock *lock)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): glibc's handle is the address. */
    return lock->owner == (void *)pthread_self();
}

/* Whether another thread has the lock: a function that takes it would wait. */
ALWAYS bool stream_is_taken(const FILE *file)
{
    const struct stream_lock *lock = stream_lock_of(file);
    return lock && UNLIKELY(__atomic_load_n(&lock->word, __ATOMIC_RELAXED) != 0) &&
           !stream_is_own(lock);
}

/* flockfile and funlockfile, recorded as those of a mutex. */
void stream_take(FILE *file, const struct unwind_start *caller);
void stream_leave(FILE *file, const struct unwind_start *caller);

/*
 * The lock of a stream, taken by the wrapper where a function of stdio may keep it for long or wait
 * for it: so the holder and the wait are known. A variable with the attribute STREAM_TAKEN releases
 * it at the end of its scope.
 */
struct stream_taken {
    FILE *file; /* NULL: not taken */
    struct unwind_start caller;
};

/* glibc's flag of a stream whose functions take no lock (__fsetlocking(3)). */
#define STREAM_UNLOCKED 0x8000

/* `brief`: the function only uses the buffer. */
ALWAYS struct stream_taken stream_take_first(FILE *file, bool brief,
                                             const struct unwind_start *caller)
{
    if (LIKELY(!file || (brief && !stream_is_taken(file))) || file->_flags & STREAM_UNLOCKED)
        return (struct stream_taken){0};
    stream_take(file, caller);
    return (struct stream_taken){file, *caller};
}

ALWAYS void stream_end(const struct stream_taken *taken)
{
    if (UNLIKELY(taken->file != NULL))
        stream_leave(taken->file, &taken->caller);
}

#define STREAM_TAKEN __attribute__((cleanup(stream_end), unused))
