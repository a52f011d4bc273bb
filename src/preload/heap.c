/*
 * The live heap; only in libtrail-heap.so, which is libtrail-preload.so plus malloc and related
 * functions. Each thread counts in its slot what it allocates and frees, and the collector adds the
 * counts up. A record, with the exact time, is written only if the count has changed by STEP since
 * the last record and that was not in the same millisecond, or by LEAP.
 *
 * Sizes come from the malloc_usable_size of the library that provides the program's malloc. Nested
 * allocations within that library are counted once, by the outermost call.
 *
 * malloc is called very early, also by the loader: until the real functions are found, which may
 * itself allocate, memory comes from a small array.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "preload/known.h"

#define STEP (64 << 10)
#define LEAP (1 << 20)

/* MARK: The real functions */

/* An allocator may lack the rare functions; the C library's are then found, whose blocks differ. */
#define FUNCTIONS(ROW)                                                                             \
    ROW(malloc)                                                                                    \
    ROW(calloc)                                                                                    \
    ROW(realloc)                                                                                   \
    ROW(reallocarray)                                                                              \
    ROW(free)                                                                                      \
    ROW(malloc_usable_size)
#define RARE_FUNCTIONS(ROW)                                                                        \
    ROW(aligned_alloc)                                                                             \
    ROW(memalign)                                                                                  \
    ROW(posix_memalign)                                                                            \
    ROW(valloc)                                                                                    \
    ROW(pvalloc)

static struct {
#define ROW(name) __typeof__(&name) name;
    FUNCTIONS(ROW)
    RARE_FUNCTIONS(ROW)
#undef ROW
} heap;

/* Whether the rare functions return blocks of the same allocator as malloc. */
static struct {
#define ROW(name) bool name;
    RARE_FUNCTIONS(ROW)
#undef ROW
} is_counted;

static bool found; /* `heap` is complete; stored with release after it */
static PER_THREAD bool
    inside; /* in a real function, or looking one up: nested calls pass through */

static size_t no_size(void *memory)
{
    (void)memory;
    return 0;
}

/* malloc_usable_size of another library would misread the block's header. */
static bool is_of_malloc(void *function)
{
    Dl_info of_malloc, of_function;
    return function && dladdr((void *)(uintptr_t)heap.malloc, &of_malloc) &&
           dladdr(function, &of_function) && of_malloc.dli_fbase == of_function.dli_fbase;
}

/* False while this thread is finding them. */
static __attribute__((noinline)) bool find(void)
{
    int old_errno = errno;
    if (inside)
        return false;
    inside = true;
    /*
     * dlsym allocates an error message for a missing function, so this must not happen while an
     * allocator waits for one.
     */
    real_find();
#define ROW(name) heap.name = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name);
    FUNCTIONS(ROW)
    RARE_FUNCTIONS(ROW)
#undef ROW
#define ROW(name) is_counted.name = is_of_malloc((void *)(uintptr_t)heap.name);
    RARE_FUNCTIONS(ROW)
#undef ROW
    /* A sanitizer's function might be called before it is ready. */
    if (!is_of_malloc((void *)(uintptr_t)heap.malloc_usable_size) ||
        dlsym(RTLD_DEFAULT, "__sanitizer_get_allocated_size"))
        heap.malloc_usable_size = no_size;
    inside = false;
    __atomic_store_n(&found, true, __ATOMIC_RELEASE);
    errno = old_errno;
    return true;
}

ALWAYS bool is_ready(void)
{
    return LIKELY(__atomic_load_n(&found, __ATOMIC_ACQUIRE)) || find();
}

/* MARK: Before they are found */

static char early[16384] __attribute__((aligned(16)));
static size_t early_used;

static bool is_early(const void *memory)
{
    return (uintptr_t)memory - (uintptr_t)early < sizeof early;
}

/* Returns zeroed memory from the array; it is never reused. */
static void *early_get(size_t size)
{
    size_t at, whole = (size + 15) & ~(size_t)15;
    if (size > sizeof early)
        return NULL;
    at = __atomic_fetch_add(&early_used, whole, __ATOMIC_RELAXED);
    return at + whole <= sizeof early ? &early[at] : NULL;
}

/* MARK: Counting */

static __attribute__((noinline)) void record_heap_size(void)
{
    int64_t moved = self.slot->heap - self.heap_recorded;
    int old_errno = errno;
    if ((moved >= LEAP || moved <= -LEAP ||
         clock_cheap() - self.heap_recorded_at >= preload.half_step_ticks) &&
        is_wanted(SHM_GROUP_HEAP))
        heap_tell();
    errno = old_errno;
}

static __attribute__((noinline)) void count_rest(int64_t bytes)
{
    int64_t *at = preload.area ? &preload.area->header.heap_rest : &preload_heap_early;
    (void)__atomic_add_fetch(at, bytes, __ATOMIC_RELAXED);
}

/* After a fork in the child: the slot is still the parent's, but there is no area. */
ALWAYS void count(int64_t bytes)
{
    struct shm_thread *slot = self.slot;
    if (UNLIKELY(!preload.area || !slot)) {
        count_rest(bytes);
        return;
    }
    int64_t heap_now = slot->heap + bytes;
    __atomic_store_n(&slot->heap, heap_now, __ATOMIC_RELAXED);
    if (UNLIKELY((uint64_t)(heap_now - self.heap_recorded + STEP) > (uint64_t)STEP * 2))
        record_heap_size();
}

ALWAYS int64_t size_of(void *memory)
{
    return memory ? (int64_t)heap.malloc_usable_size(memory) : 0;
}

/* Counts the result of a real function in the outermost call. Reading a size may allocate. */
#define COUNTED(...)                                                                               \
    ({                                                                                             \
        void *memory_;                                                                             \
        int64_t size_;                                                                             \
        inside = true;                                                                             \
        memory_ = __VA_ARGS__;                                                                     \
        size_ = size_of(memory_);                                                                  \
        inside = false;                                                                            \
        if (LIKELY(size_ != 0))                                                                    \
            count(size_);                                                                          \
        memory_;                                                                                   \
    })

/*
 * Records the end of known locks in freed memory. For a large block the list of locks is searched
 * instead of the block's cache lines.
 */
static __attribute__((noinline)) void forget_locks(uintptr_t memory, size_t size)
{
    uintptr_t line = memory;
    while (size <= 4096 && line < memory + size && !known_has_line(line))
        line += KNOWN_LINE;
    if (size > 4096 || line < memory + size || known_has_line(memory + size - 1))
        known_forget(memory, memory + size);
}

ALWAYS void gone(const void *memory, int64_t size)
{
    if (UNLIKELY(known.used) && size > 0)
        forget_locks((uintptr_t)memory, (size_t)size);
}

/* MARK: Allocating */

EXPORT void *malloc(size_t size)
{
    if (UNLIKELY(!is_ready()))
        return early_get(size);
    if (UNLIKELY(inside))
        return heap.malloc(size);
    return COUNTED(heap.malloc(size));
}

EXPORT void *calloc(size_t count_, size_t size)
{
    size_t bytes;
    if (UNLIKELY(!is_ready()))
        return __builtin_mul_overflow(count_, size, &bytes) ? NULL : early_get(bytes);
    if (UNLIKELY(inside))
        return heap.calloc(count_, size);
    return COUNTED(heap.calloc(count_, size));
}

/* A rare function whose last parameter is `size`. */
#define RARE(name, parameters, arguments)                                                          \
    EXPORT void *name(EXPAND parameters)                                                           \
    {                                                                                              \
        if (UNLIKELY(!is_ready()))                                                                 \
            return NULL;                                                                           \
        if (UNLIKELY(inside || !is_counted.name))                                                  \
            return heap.name(EXPAND arguments);                                                    \
        return COUNTED(heap.name(EXPAND arguments));                                               \
    }

RARE(aligned_alloc, (size_t alignment, size_t size), (alignment, size))
RARE(memalign, (size_t alignment, size_t size), (alignment, size))
RARE(valloc, (size_t size), (size))
RARE(pvalloc, (size_t size), (size))

EXPORT int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (UNLIKELY(!is_ready()))
        return ENOMEM;
    if (UNLIKELY(inside || !is_counted.posix_memalign))
        return heap.posix_memalign(memory, alignment, size);
    inside = true;
    int status = heap.posix_memalign(memory, alignment, size);
    int64_t bytes = status == 0 ? size_of(*memory) : 0;
    inside = false;
    count(bytes);
    return status;
}

/* MARK: Freeing */

EXPORT void free(void *memory)
{
    if (UNLIKELY(!memory || is_early(memory) || !is_ready()))
        return;
    if (UNLIKELY(inside)) {
        heap.free(memory);
        return;
    }
    inside = true;
    int64_t size = size_of(memory);
    gone(memory, size);
    count(-size);
    heap.free(memory);
    inside = false;
}

/* Moves a block of the early array to memory that can be freed. */
static __attribute__((noinline)) void *realloc_early(void *memory, size_t size)
{
    size_t most = (size_t)(&early[sizeof early] - (char *)memory);
    void *other = malloc(size);
    if (other)
        memcpy(other, memory, size < most ? size : most);
    return other;
}

/* `nothing`: the size is 0, so a NULL result means that the memory was freed. */
#define REALLOC(nothing, ...)                                                                      \
    int64_t old, size_now;                                                                         \
    void *other;                                                                                   \
    if (UNLIKELY(inside))                                                                          \
        return __VA_ARGS__;                                                                        \
    inside = true;                                                                                 \
    old = size_of(memory);                                                                         \
    other = __VA_ARGS__;                                                                           \
    size_now = size_of(other);                                                                     \
    inside = false;                                                                                \
    if (other != memory && (other || (nothing)))                                                   \
        gone(memory, old);                                                                         \
    if (other || (nothing))                                                                        \
        count(size_now - old);                                                                     \
    return other

EXPORT void *realloc(void *memory, size_t size)
{
    if (UNLIKELY(is_early(memory) || !is_ready()))
        return memory ? realloc_early(memory, size) : early_get(size);
    REALLOC(size == 0, heap.realloc(memory, size));
}

EXPORT void *reallocarray(void *memory, size_t count_, size_t size)
{
    size_t bytes;
    if (UNLIKELY(is_early(memory) || !is_ready())) {
        if (__builtin_mul_overflow(count_, size, &bytes))
            return NULL;
        return memory ? realloc_early(memory, bytes) : early_get(bytes);
    }
    REALLOC(count_ == 0 || size == 0, heap.reallocarray(memory, count_, size));
}

/* MARK: C++'s new and delete */

/*
 * operator new and delete. Those of jemalloc and tcmalloc do not call malloc; those of the C++
 * libraries do, and are passed through. All take up to three words: a size or pointer, a size or an
 * alignment, an alignment or std::nothrow.
 */
typedef void *cxx_function(uintptr_t one, uintptr_t two, uintptr_t three);

#define CXX_NEW(ROW)                                                                               \
    ROW(_Znwm)                                                                                     \
    ROW(_Znam)                                                                                     \
    ROW(_ZnwmRKSt9nothrow_t)                                                                       \
    ROW(_ZnamRKSt9nothrow_t)
#define CXX_NEW_ALIGNED(ROW)                                                                       \
    ROW(_ZnwmSt11align_val_t)                                                                      \
    ROW(_ZnamSt11align_val_t)                                                                      \
    ROW(_ZnwmSt11align_val_tRKSt9nothrow_t)                                                        \
    ROW(_ZnamSt11align_val_tRKSt9nothrow_t)
#define CXX_DELETE(ROW)                                                                            \
    ROW(_ZdlPv)                                                                                    \
    ROW(_ZdaPv)                                                                                    \
    ROW(_ZdlPvm)                                                                                   \
    ROW(_ZdaPvm)                                                                                   \
    ROW(_ZdlPvRKSt9nothrow_t)                                                                      \
    ROW(_ZdaPvRKSt9nothrow_t)                                                                      \
    ROW(_ZdlPvSt11align_val_t)                                                                     \
    ROW(_ZdaPvSt11align_val_t)                                                                     \
    ROW(_ZdlPvmSt11align_val_t)                                                                    \
    ROW(_ZdaPvmSt11align_val_t)                                                                    \
    ROW(_ZdlPvSt11align_val_tRKSt9nothrow_t)                                                       \
    ROW(_ZdaPvSt11align_val_tRKSt9nothrow_t)

struct cxx {
    const char *name;
    cxx_function *real; /* stored with release after the other */
    bool is_counted;
    cxx_function *stand_in; /* used if no library has it */
};

/* For a library with a private C++ library, which searches the program first and finds the
 * wrappers. */
static void *new_by_malloc(uintptr_t size, uintptr_t two, uintptr_t three)
{
    void *memory = malloc(size ? size : 1);
    (void)two;
    (void)three;
    if (!memory)
        abort();
    return memory;
}

static void *new_by_aligned_alloc(uintptr_t size, uintptr_t alignment, uintptr_t three)
{
    void *memory = NULL;
    (void)three;
    if (posix_memalign(&memory, alignment < sizeof memory ? sizeof memory : alignment,
                       size ? size : 1) != 0)
        abort();
    return memory;
}

static void *delete_by_free(uintptr_t memory, uintptr_t two, uintptr_t three)
{
    (void)two;
    (void)three;
    free((void *)memory); /* NOLINT(performance-no-int-to-ptr): it was one. */
    return NULL;
}

static struct cxx cxx[] = {
#define ROW(symbol) {.name = #symbol, .stand_in = new_by_malloc},
    CXX_NEW(ROW)
#undef ROW
#define ROW(symbol) {.name = #symbol, .stand_in = new_by_aligned_alloc},
        CXX_NEW_ALIGNED(ROW)
#undef ROW
#define ROW(symbol) {.name = #symbol, .stand_in = delete_by_free},
            CXX_DELETE(ROW)
#undef ROW
};

enum {
#define ROW(symbol) CXX##symbol,
    CXX_NEW(ROW) CXX_NEW_ALIGNED(ROW) CXX_DELETE(ROW)
#undef ROW
};

/* Finds the function of the program or of a privately loaded C++ library, and keeps it loaded. */
static cxx_function *next_cxx(const char *name)
{
    static const char *const files[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    void *next = dlsym(RTLD_NEXT, name);
    for (size_t i = 0; !next && i < sizeof files / sizeof *files; i++) {
        void *library = dlopen(files[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!library)
            continue;
        next = dlsym(library, name);
        if (!next)
            (void)REAL(dlclose)(library);
    }
    return (cxx_function *)(uintptr_t)next;
}

static __attribute__((noinline)) cxx_function *find_cxx(struct cxx *function)
{
    int old_errno = errno;
    cxx_function *other = next_cxx(function->name);
    function->is_counted = other && is_ready() && heap.malloc_usable_size != no_size &&
                           is_of_malloc((void *)(uintptr_t)other);
    other = other ? other : function->stand_in;
    __atomic_store_n(&function->real, other, __ATOMIC_RELEASE);
    errno = old_errno;
    return other;
}

ALWAYS cxx_function *real_cxx(struct cxx *function)
{
    cxx_function *other = __atomic_load_n(&function->real, __ATOMIC_ACQUIRE);
    return LIKELY(other != NULL) ? other : find_cxx(function);
}

/* Also runs if the real function throws. */
static void leave(const bool *entered)
{
    (void)entered;
    inside = false;
}

static void *cxx_new(struct cxx *function, uintptr_t one, uintptr_t two, uintptr_t three)
{
    cxx_function *other = real_cxx(function);
    void *memory;
    int64_t size;
    if (!function->is_counted || inside)
        return other(one, two, three);
    {
        bool entered __attribute__((cleanup(leave))) = true;
        inside = entered;
        memory = other(one, two, three);
        size = size_of(memory);
    }
    count(size);
    return memory;
}

static void cxx_delete(struct cxx *function, uintptr_t memory, uintptr_t two, uintptr_t three)
{
    cxx_function *other = real_cxx(function);
    if (!function->is_counted || inside || !memory) {
        (void)other(memory, two, three);
        return;
    }
    inside = true;
    int64_t size = size_of((void *)memory); /* NOLINT(performance-no-int-to-ptr): it was one. */
    gone((const void *)memory, size);       /* NOLINT(performance-no-int-to-ptr) */
    count(-size);
    (void)other(memory, two, three);
    inside = false;
}

/* NOLINTBEGIN(bugprone-reserved-identifier): C++'s names. */
#define ROW(symbol)                                                                                \
    EXPORT void *symbol(uintptr_t one, uintptr_t two, uintptr_t three);                            \
    EXPORT void *symbol(uintptr_t one, uintptr_t two, uintptr_t three)                             \
    {                                                                                              \
        return cxx_new(&cxx[CXX##symbol], one, two, three);                                        \
    }
CXX_NEW(ROW)
CXX_NEW_ALIGNED(ROW)
#undef ROW
#define ROW(symbol)                                                                                \
    EXPORT void symbol(uintptr_t memory, uintptr_t two, uintptr_t three);                          \
    EXPORT void symbol(uintptr_t memory, uintptr_t two, uintptr_t three)                           \
    {                                                                                              \
        cxx_delete(&cxx[CXX##symbol], memory, two, three);                                         \
    }
CXX_DELETE(ROW)
#undef ROW
/* NOLINTEND(bugprone-reserved-identifier) */
