/* Capturing and storing stacks: see stack.h. */
#include "tracer/stack.h"
#include "base/pc.h"
#include "host/libunwind.h"
#include "host/unwind.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include "tracer/tsan.h"

/* Maximum number of the library's own frames in a walk by libunwind or backtrace, removed by PC. */
#define OWN_FRAMES 8

/* PCs that a walk may store, including skipped ones. */
#define MOST_WALKED (TRAIL_MAX_FRAMES + OWN_FRAMES + 32)

/* No program has code in the first page, nor beyond the addresses of user space. */
#define FIRST_CODE ((uintptr_t)4096)
#define LAST_CODE  (UINTPTR_MAX / 4096)

static int (*unw_backtrace)(void **, int);

/* MARK: Frame pointers */

/*
 * Whether a word can be a PC. Below main, or in code without frame pointers, the frame register can
 * hold anything, usually an address on the stack, [leaf, high), where the walk then finds numbers
 * and pointers to the stack.
 */
static inline bool is_code(uintptr_t pc, uintptr_t leaf, uintptr_t high)
{
    return pc >= FIRST_CODE && pc < LAST_CODE && pc - leaf >= high - leaf;
}

/*
 * A frame is { caller's frame, return address } at the frame pointer, on x86-64 and arm64 alike.
 * Only words between the first frame and the stack's end are read, and addresses only increase: a
 * register with another value ends the walk and cannot cause a fault.
 */
struct walk {
    uintptr_t frame, leaf, high;
};

static inline bool is_frame(const struct walk *walk)
{
    return walk->frame % sizeof(uintptr_t) == 0 &&
           walk->frame <= walk->high - 2 * sizeof(uintptr_t);
}

/* Steps to the next PC; false at the end of the stack. */
__attribute__((no_sanitize("address"))) static inline bool walk_on(struct walk *walk, uintptr_t *pc)
{
    const uintptr_t *at = (const uintptr_t *)walk->frame;
    if (walk->frame % sizeof(uintptr_t) != 0 || walk->frame > walk->high - 2 * sizeof(uintptr_t))
        return false;
    *pc = pc_plain(at[1]);
    if (!is_code(*pc, walk->leaf, walk->high))
        return false;
    walk->frame = at[0] > walk->frame ? at[0] : walk->high;
    return true;
}

static size_t walk_frames(uintptr_t frame, uintptr_t high, unsigned skip, size_t max,
                          uintptr_t *pcs)
{
    struct walk walk = {frame, frame, high};
    uintptr_t pc;
    size_t n = 0;
    while (n < max && walk_on(&walk, &pc)) {
        if (skip)
            skip--;
        else
            pcs[n++] = pc;
    }
    return n;
}

/*
 * Whether the walk yields the PCs of an entry, without storing, hashing or searching. PCs of an
 * entry are known to be code.
 */
__attribute__((no_sanitize("address"))) static inline bool
walk_matches(uintptr_t frame, uintptr_t high, unsigned skip, size_t max,
             const struct table_entry *entry)
{
    struct walk walk = {frame, frame, high};
    const uintptr_t *pcs = (const uintptr_t *)entry->data;
    size_t n = entry->size / sizeof *pcs;
    uintptr_t pc;
    for (; skip; skip--) {
        if (!walk_on(&walk, &pc))
            return false;
    }
    for (size_t i = 0; i < n; i++) {
        const uintptr_t *at = (const uintptr_t *)walk.frame;
        if (!is_frame(&walk) || pc_plain(at[1]) != pcs[i])
            return false;
        walk.frame = at[0];
        if (unlikely(at[0] <= (uintptr_t)at))
            walk.frame = high;
    }
    return n == max || !walk_on(&walk, &pc);
}

/* On a stack with unknown bounds, only this frame's return address is certain to be readable. */
static inline uintptr_t end_of_unknown(uintptr_t frame)
{
    return frame + 2 * sizeof(uintptr_t);
}

/* Returns the end of the stack that `frame` is on: the goroutine's own or the thread's. */
static uintptr_t stack_end(const trail_m *m, uintptr_t frame)
{
    const trail_g *g = m->g;
    /* Compares with its end first: NULL for most hosts. */
    if (g && frame < (uintptr_t)g->stack_high && frame >= (uintptr_t)g->stack_low)
        return (uintptr_t)g->stack_high;
    if (frame >= (uintptr_t)m->stack_low_ && frame < (uintptr_t)m->stack_high_)
        return (uintptr_t)m->stack_high_;
    return end_of_unknown(frame);
}

/* MARK: The job's root (trail_g.stack_root) */

/* Returns the frame that ends the job's part of the stack [frame, high); 0: there is none. */
static uintptr_t stack_root(const trail_m *m, uintptr_t frame, uintptr_t high)
{
    uintptr_t root = (uintptr_t)m->g->stack_root;
    return root > frame && root <= high - 2 * sizeof(uintptr_t) ? root : 0;
}

/* Whether the host has set a root, perhaps of another stack. The hot path. */
static inline bool has_root(const trail_m *m)
{
    return unlikely(m->g && m->g->stack_root) && STACK_HAS_FRAMES;
}

/*
 * Walks the frames below `root`. The outermost of them returns to the function whose frame that is,
 * and is not part of the job's stack.
 */
static size_t walk_job(uintptr_t frame, uintptr_t root, unsigned skip, size_t max, uintptr_t *pcs)
{
    uintptr_t all[TRAIL_MAX_FRAMES + 1];
    size_t n = walk_frames(frame, root, skip, max + 1, all);
    if (n > 0)
        n--;
    memcpy(pcs, all, n * sizeof *pcs);
    return n;
}

/* MARK: Tables (host/unwind.h) */

/* Stores the PCs of the stack of `frame`, [frame, high), without the innermost `skip`. */
static size_t walk_tables(uintptr_t frame, uintptr_t high, unsigned skip, size_t max,
                          uintptr_t *pcs)
{
    struct unwind_start caller = unwind_caller_of((const void *)frame);
    size_t wanted = max + skip < MOST_WALKED ? max + skip : MOST_WALKED;
    size_t n = unwind_stack(&caller, high, pcs, wanted);
    if (skip > n)
        skip = (unsigned)n;
    if (skip)
        memmove(pcs, pcs + skip, (n - skip) * sizeof *pcs);
    return n - skip;
}

/* MARK: libunwind, backtrace */

/* Captures the caller's stack, which may begin with this function's frame. */
static size_t unwind(uintptr_t *pcs, size_t max)
{
    int n =
        unw_backtrace ? unw_backtrace((void **)pcs, (int)max) : backtrace((void **)pcs, (int)max);
    return n > 0 ? (size_t)n : 0;
}

/* Returns the index of the frame that returns to the host, or `skip` frames further out. */
static size_t find_leaf(const uintptr_t *pcs, size_t n, uintptr_t leaf, unsigned skip)
{
    size_t at = 0;
    while (at < n && at < OWN_FRAMES && pcs[at] != leaf)
        at++;
    if (at == n || pcs[at] != leaf)
        at = 0;
    return at + skip < n ? at + skip : n;
}

__attribute__((no_sanitize("address"))) static uintptr_t return_address(uintptr_t frame)
{
#if STACK_HAS_FRAMES
    return pc_plain(((const uintptr_t *)frame)[1]);
#else
    return frame;
#endif
}

/*
 * Stores the PCs of the calling thread's stack, from the caller of the function with `frame` on,
 * without the innermost `skip`.
 */
static size_t walk_unwound(uintptr_t frame, unsigned skip, size_t max, uintptr_t *pcs)
{
    uintptr_t all[MOST_WALKED];
    size_t wanted = max + skip + OWN_FRAMES, n, leaf;
    n = unwind(all, wanted < MOST_WALKED ? wanted : MOST_WALKED);
    leaf = find_leaf(all, n, return_address(frame), skip);
    n = n - leaf < max ? n - leaf : max;
    memcpy(pcs, all + leaf, n * sizeof *pcs);
    return n;
}

/* MARK: Capture */

/*
 * Returns the slot of the stack last captured at this place. It is usually the same again, and
 * comparing takes half the time of a look-up.
 */
static const struct table_entry **recent(trail_m *m, uintptr_t leaf, uintptr_t frame)
{
    return (const struct table_entry **)&m
        ->recent_stacks_[(leaf ^ leaf >> 3 ^ frame >> 4) % TRAIL_RECENT_STACKS_];
}

/* Stores the PCs of a stack, unless they equal those last captured at this place. */
static const struct table_entry *capture_pcs(trail_m *m, uint64_t generation, uintptr_t frame,
                                             const uintptr_t *pcs, size_t n)
{
    const struct table_entry **slot = recent(m, n ? pcs[0] : 0, frame);
    if (n > tracer.max_frames)
        n = tracer.max_frames;
    if (!*slot || (*slot)->size != n * sizeof *pcs ||
        memcmp((*slot)->data, pcs, (*slot)->size) != 0)
        *slot = stack_put(generation, pcs, n);
    return *slot;
}

/* Like capture_frames, for a stack that ends at the job's root. */
__attribute__((noinline)) static const struct table_entry *
capture_job(trail_m *m, uint64_t generation, unsigned skip, uintptr_t frame, uintptr_t root)
{
    uintptr_t pcs[TRAIL_MAX_FRAMES];
    __atomic_store_n(&m->g->rooted_, true, __ATOMIC_RELAXED);
    return capture_pcs(m, generation, frame, pcs,
                       walk_job(frame, root, skip, tracer.max_frames, pcs));
}

static const struct table_entry *capture_frames(trail_m *m, uint64_t generation, unsigned skip,
                                                uintptr_t frame)
{
    const struct table_entry **slot = recent(m, return_address(frame), frame);
    uintptr_t pcs[TRAIL_MAX_FRAMES], high = stack_end(m, frame);
    if (has_root(m) && stack_root(m, frame, high))
        return capture_job(m, generation, skip, frame, stack_root(m, frame, high));
    if (unlikely(!*slot || !walk_matches(frame, high, skip, tracer.max_frames, *slot)))
        *slot = stack_put(generation, pcs, walk_frames(frame, high, skip, tracer.max_frames, pcs));
    return *slot;
}

/*
 * Returns how many of the PCs belong to the job. They end before the function that calls it, whose
 * PC precedes the return address of its frame.
 */
static size_t cut_at_root(const trail_m *m, uintptr_t frame, const uintptr_t *pcs, size_t n)
{
    uintptr_t root = has_root(m) ? stack_root(m, frame, stack_end(m, frame)) : 0, caller;
    if (likely(!root))
        return n;
    caller = return_address(root);
    for (size_t i = 1; i < n; i++) {
        if (pcs[i] == caller) {
            __atomic_store_n(&m->g->rooted_, true, __ATOMIC_RELAXED);
            return i - 1;
        }
    }
    return n;
}

static const struct table_entry *capture_unwound(trail_m *m, uint64_t generation, unsigned skip,
                                                 uintptr_t frame)
{
    uintptr_t pcs[MOST_WALKED];
    /* One more, to find a root that calls the last frame. */
    size_t n = walk_unwound(frame, skip, tracer.max_frames + 1, pcs);
    return capture_pcs(m, generation, frame, pcs, cut_at_root(m, frame, pcs, n));
}

/*
 * The walk by tables reads nothing outside of the stack. On a stack with unknown bounds libunwind
 * is used, if loaded.
 */
static const struct table_entry *capture_by_tables(trail_m *m, uint64_t generation, unsigned skip,
                                                   uintptr_t frame)
{
    uintptr_t pcs[MOST_WALKED], high = stack_end(m, frame);
    if (unlikely(high == end_of_unknown(frame)) && unw_backtrace)
        return capture_unwound(m, generation, skip, frame);
    size_t n = walk_tables(frame, high, skip, tracer.max_frames + 1, pcs);
    return capture_pcs(m, generation, frame, pcs, cut_at_root(m, frame, pcs, n));
}

static const struct table_entry *capture_host(trail_m *m, uint64_t generation, unsigned skip,
                                              uintptr_t frame)
{
    uintptr_t pcs[TRAIL_MAX_FRAMES];
    const trail_host *host = live_host();
    size_t n = host->callers ? host->callers(host->context, pcs, tracer.max_frames) : 0;
    if (n > tracer.max_frames)
        n = tracer.max_frames;
    if (skip >= n)
        return capture_pcs(m, generation, frame, pcs, 0);
    return capture_pcs(m, generation, frame, pcs + skip,
                       cut_at_root(m, frame, pcs + skip, n - skip));
}

const struct table_entry *stack_capture(trail_m *m, uint64_t generation, unsigned skip,
                                        uintptr_t frame)
{
    switch (tracer.unwinder) {
    case TRAIL_UNWIND_AUTO:
    case TRAIL_UNWIND_FRAME_POINTERS:
        return capture_frames(m, generation, skip, frame);
    case TRAIL_UNWIND_TABLES:
        return capture_by_tables(m, generation, skip, frame);
    case TRAIL_UNWIND_LIBUNWIND:
        return capture_unwound(m, generation, skip, frame);
    case TRAIL_UNWIND_HOST:
        return capture_host(m, generation, skip, frame);
    default:
        return NULL;
    }
}

const struct table_entry *stack_put(uint64_t generation, const uintptr_t *pcs, size_t n)
{
    uint64_t hash = n, factor = 0x9e3779b97f4a7c15u;
    const struct table_entry *entry;
    if (n == 0)
        return NULL;
    /* A sum of products: no multiplication depends on an earlier one. */
    for (size_t i = 0; i < n; i++, factor += 0x632be59bd9b4e01au)
        hash += (pcs[i] ^ pcs[i] >> 29) * factor;
    hash ^= hash >> 32;
    entry = table_put(stack_table(generation), pcs, n * sizeof *pcs, hash, NULL);
    if (unlikely(!entry))
        count(&tracer.stats.lost_stacks);
    return entry;
}

size_t stack_list(const trail_m *m, uintptr_t frame, uintptr_t *pcs, size_t max)
{
    uintptr_t high = m ? stack_end(m, frame) : end_of_unknown(frame);
    if (tracer.unwinder == TRAIL_UNWIND_TABLES)
        return walk_tables(frame, high, 0, max, pcs);
    if (STACK_HAS_FRAMES && tracer.unwinder != TRAIL_UNWIND_LIBUNWIND)
        return walk_frames(frame, high, 0, max, pcs);
    return walk_unwound(frame, 0, max, pcs);
}

/* MARK: CPU samples */

size_t stack_of_context(const trail_m *m, const void *context, uintptr_t *pcs, size_t max)
{
    /* A sampled PC is not a return address; readers subtract one. */
    struct unwind_start at = unwind_interrupted(context);
    uintptr_t high = stack_end(m, at.sp), root;
    if (at.pc <= 1 || max == 0)
        return 0;
    if (tracer.unwinder == TRAIL_UNWIND_TABLES) {
        bool known = high != end_of_unknown(at.sp);
        return cut_at_root(m, at.sp, pcs, unwind_stack(&at, known ? high : 0, pcs, max));
    }
    pcs[0] = at.pc;
    if (at.fp < at.sp || high <= end_of_unknown(at.sp))
        return 1;
    root = has_root(m) ? stack_root(m, at.fp, high) : 0;
    return 1 + (root ? walk_job(at.fp, root, 0, max - 1, pcs + 1)
                     : walk_frames(at.fp, high, 0, max - 1, pcs + 1));
}

/* MARK: Setting up */

/*
 * The main thread's stack continues above the end from pthread_getattr_np, with the environment and
 * arguments, and ends with the program's name. Pointers there are not return addresses either.
 */
#define MOST_ARGUMENTS ((uintptr_t)8 << 20)

static uintptr_t end_of_arguments(uintptr_t high)
{
    uintptr_t name = (uintptr_t)getauxval(AT_EXECFN);
    if (name < high || name - high > MOST_ARGUMENTS)
        return high;
    /* Eight zero bytes follow the name. */
    return (name + strlen((const char *)name) + sizeof(uintptr_t)) & -sizeof(uintptr_t);
}

void stack_bounds(const void **low, const void **high)
{
    pthread_attr_t attr;
    void *base;
    size_t size;
    *low = *high = NULL;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return;
    if (pthread_attr_getstack(&attr, &base, &size) == 0) {
        *low = base;
        *high = (void *)end_of_arguments((uintptr_t)base + size);
    }
    pthread_attr_destroy(&attr);
}

/*
 * Whether the process has a dynamic loader. A library that a static program loads brings its own C
 * library, which does not work there.
 */
static bool has_loader(void)
{
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    for (unsigned long i = 0; headers && i < getauxval(AT_PHNUM); i++) {
        if (headers[i].p_type == PT_INTERP)
            return true;
    }
    return false;
}

static void load_libunwind(void)
{
    static bool tried;
    void *library;
    /* At thread exit libunwind takes a lock after TSan has released its state of the thread. */
    if (tried || __tsan_acquire || !has_loader())
        return;
    tried = true;
    /* Never linked: its backtrace and _Unwind_* would replace those of the whole process. */
    library = dlopen(LIBUNWIND_FILE, RTLD_NOW | RTLD_LOCAL);
    if (library)
        *(void **)&unw_backtrace = dlsym(library, "unw_backtrace");
}

static const void *module_of(uintptr_t pc)
{
    Dl_info info;
    return dladdr((void *)(pc - 1), &info) ? info.dli_fbase : NULL;
}

/*
 * Whether frame pointers agree with the unwinding tables, from the caller of trail_start through
 * its callers in the same module to the first outside it. The C library's own frames have no frame
 * pointers.
 */
static bool frame_pointers_work(uintptr_t frame)
{
    const void *low, *high;
    uintptr_t by_frames[16], by_tables[16];
    size_t n, tables, own = 1, same = 0;
    stack_bounds(&low, &high);
    if (frame < (uintptr_t)low || frame >= (uintptr_t)high)
        return true;
    n = walk_frames(frame, (uintptr_t)high, 0, 16, by_frames);
    tables = UNWIND_HAS_TABLES ? walk_tables(frame, (uintptr_t)high, 0, 16, by_tables)
                               : walk_unwound(frame, 0, 16, by_tables);
    while (same < n && same < tables && by_frames[same] == by_tables[same])
        same++;
    while (own < tables && own < 4 && module_of(by_tables[own]) == module_of(by_tables[0]))
        own++;
    /* A function's frame pointer yields its caller's address. */
    return same > own || same == tables;
}

static int read_unloads(struct dl_phdr_info *info, size_t size, void *unloads)
{
    (void)size;
    *(unsigned long long *)unloads = info->dlpi_subs;
    return 1;
}

void stack_forget_unloaded(void)
{
    static unsigned long long known;
    unsigned long long unloads = 0;
    if (tracer.unwinder != TRAIL_UNWIND_TABLES)
        return;
    pthread_mutex_lock(&tracer.walk);
    (void)dl_iterate_phdr(read_unloads, &unloads);
    pthread_mutex_unlock(&tracer.walk);
    if (unloads != known)
        unwind_forget();
    known = unloads;
}

/* Returns the unwinder of a host without frame pointers. */
static trail_unwinder choose_slow(void)
{
    return UNWIND_HAS_TABLES ? TRAIL_UNWIND_TABLES : TRAIL_UNWIND_LIBUNWIND;
}

trail_unwinder stack_choose(trail_unwinder wanted, uintptr_t frame)
{
    if (wanted == TRAIL_UNWIND_HOST && !live_host()->callers)
        wanted = TRAIL_UNWIND_AUTO;
    if (!STACK_HAS_FRAMES && (wanted == TRAIL_UNWIND_AUTO || wanted == TRAIL_UNWIND_FRAME_POINTERS))
        wanted = TRAIL_UNWIND_LIBUNWIND;
    /* Returns the unwinder with which frame pointers are compared. */
    if (!UNWIND_HAS_TABLES && wanted == TRAIL_UNWIND_AUTO)
        load_libunwind();
    if (wanted == TRAIL_UNWIND_AUTO)
        wanted = frame_pointers_work(frame) ? TRAIL_UNWIND_FRAME_POINTERS : choose_slow();
    else if (wanted == TRAIL_UNWIND_TABLES)
        wanted = choose_slow();
    if (wanted == TRAIL_UNWIND_TABLES || wanted == TRAIL_UNWIND_LIBUNWIND)
        load_libunwind();
    if (wanted == TRAIL_UNWIND_LIBUNWIND && !unw_backtrace) {
        void *one;
        /* The first call loads libgcc and allocates, so it is made here, not in an event. */
        (void)backtrace(&one, 1);
    }
    return wanted;
}
