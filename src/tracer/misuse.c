/* Counts and reports wrong calls: see misuse.h. */
#include "tracer/misuse.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/stack.h"
#include "tracer/tracer.h"

/* The first one. The thread that changes `taken` fills it, and publishes it with `ready`. */
static struct {
    bool taken, ready; /* atomic */
    trail_misuse misuse;
} first;

void misuse_reset(void)
{
    __atomic_store_n(&first.ready, false, __ATOMIC_RELAXED);
    __atomic_store_n(&first.taken, false, __ATOMIC_RELEASE);
}

static void fill(trail_misuse *to, const trail_m *m, uintptr_t frame)
{
    const trail_p *p = m ? __atomic_load_n(&m->p, __ATOMIC_RELAXED) : NULL;
    to->thread = m ? m->id : (uint64_t)syscall(SYS_gettid);
    to->goroutine = m && m->g && is_initialized_g(m->g) ? (int64_t)m->g->id : -1;
    to->proc = p ? p->id : -1;
    to->frames = frame ? stack_list(m, frame, to->pcs, TRAIL_MISUSE_FRAMES) : 0;
}

#ifdef TRAIL_CHECK
static void print_and_abort(const trail_misuse *misuse)
{
    fprintf(stderr, "libtrail-record: %s: thread %llu (goroutine %lld, P %lld): %s\n", misuse->call,
            (unsigned long long)misuse->thread, (long long)misuse->goroutine,
            (long long)misuse->proc, misuse->reason);
    abort();
}
#endif

static bool record(trail_misuse_kind kind, const trail_m *m, uintptr_t frame, const char *what,
                   const char *why)
{
    const trail_host *host = live_host();
    trail_misuse *to = &first.misuse;
    count(&tracer.stats.misuse);
    count(&tracer.stats.misuse_of[kind]);
    if (__atomic_exchange_n(&first.taken, true, __ATOMIC_ACQ_REL))
        return false;
    *to = (trail_misuse){.kind = kind, .call = what, .reason = why};
    fill(to, m, frame);
    /* Pairs with the load in misuse_report. */
    __atomic_store_n(&first.ready, true, __ATOMIC_RELEASE);
#ifdef TRAIL_CHECK
    print_and_abort(to);
#endif
    if (host->misuse)
        host->misuse(host->context, to);
    return false;
}

bool misuse_of(trail_misuse_kind kind, const trail_m *m, const char *what, const char *why)
{
    return record(kind, m, m ? m->frame_ : 0, what, why);
}

bool misuse_at(trail_misuse_kind kind, uintptr_t frame, const char *what, const char *why)
{
    return record(kind, NULL, frame, what, why);
}

/* MARK: As a text */

/* Appends ` < function+0x1f`, or the module and the place in it. Returns the new length. */
static size_t append_frame(char *text, size_t size, size_t at, uintptr_t pc)
{
    Dl_info info;
    const char *name = "?", *slash;
    uintptr_t base = 0;
    int n;
    if (dladdr((void *)(pc - 1), &info) && info.dli_fname) {
        slash = strrchr(info.dli_fname, '/');
        name = info.dli_sname ? info.dli_sname : slash ? slash + 1 : info.dli_fname;
        base = (uintptr_t)(info.dli_sname ? info.dli_saddr : info.dli_fbase);
    }
    n = snprintf(text + at, size - at, "%s%s+0x%llx", at ? " < " : "", name,
                 (unsigned long long)(pc - base));
    return n > 0 && (size_t)n < size - at ? at + (size_t)n : size - 1;
}

bool misuse_report(trail_error *err)
{
    uint64_t n = __atomic_load_n(&tracer.stats.misuse, __ATOMIC_RELAXED);
    const trail_misuse *misuse = &first.misuse;
    char stack[256] = "", objects[64] = "";
    size_t at = 0;
    if (!__atomic_load_n(&first.ready, __ATOMIC_ACQUIRE))
        return record_fail(err, TRAIL_USAGE, "%llu wrong calls are not in the trace",
                           (unsigned long long)n);
    for (size_t i = 0; i < misuse->frames && at < sizeof stack - 1; i++)
        at = append_frame(stack, sizeof stack, at, misuse->pcs[i]);
    if (misuse->goroutine >= 0)
        (void)snprintf(objects, sizeof objects, ", goroutine %lld", (long long)misuse->goroutine);
    (void)record_fail(
        err, TRAIL_USAGE,
        "%llu call%s wrong and not in the trace; the first: %s: %s (thread %llu%s%s%s)",
        (unsigned long long)n, n == 1 ? " was" : "s were", misuse->call, misuse->reason,
        (unsigned long long)misuse->thread, objects, at ? ", at " : "", stack);
    if (err) {
        err->thread = (int64_t)misuse->thread;
        err->goroutine = misuse->goroutine;
        err->proc = misuse->proc;
    }
    return false;
}
