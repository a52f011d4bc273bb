/*
 * Stacks of code without frame pointers are compared with those of the C library's unwinder, an
 * independent reader of the same tables: from functions with all kinds of frames, from every
 * instruction, through callbacks, signals, and libraries that are loaded and unloaded. Whatever is
 * on a stack, nothing outside of it is read.
 *
 * It is compiled with frame pointers, without, without optimization, and for the C libraries that
 * have no _dl_find_object. TRAIL_TEST_FILTER names the test.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "host/unwind.h"
#include "host/unwind_cfi.h"

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
/* Keeps a call from being the last instruction of its function. */
#define STAY() __asm__ volatile("" ::: "memory")

#define MAX_PCS 256

/* MARK: Against backtrace */

static uintptr_t stack_end(void)
{
    static __thread uintptr_t end;
    pthread_attr_t attr;
    void *base;
    size_t size;
    if (end == 0) {
        assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
        assert_int_equal(pthread_attr_getstack(&attr, &base, &size), 0);
        pthread_attr_destroy(&attr);
        end = (uintptr_t)base + size;
    }
    return end;
}

struct stacks {
    uintptr_t ours[MAX_PCS];
    void *theirs[MAX_PCS];
    size_t n, their_n, skipped; /* of theirs: frames before the first common one */
};

/* Does not assert, because threads and signal handlers call it, too. */
static void describe(const struct stacks *s, const char *what)
{
    (void)fprintf(stderr, "%s\n", what);
    for (size_t i = 0; i < s->n || i + s->skipped < s->their_n; i++) {
        Dl_info info = {0};
        uintptr_t ours = i < s->n ? s->ours[i] : 0;
        void *theirs = i + s->skipped < s->their_n ? s->theirs[i + s->skipped] : NULL;
        (void)dladdr(theirs ? theirs : (void *)ours, &info);
        (void)fprintf(stderr, "  %2zu  ours %p  theirs %p  %s  %s\n", i, (void *)ours, theirs,
                      info.dli_fname ? info.dli_fname : "?", info.dli_sname ? info.dli_sname : "?");
    }
}

/* The code to which a signal handler returns: mov $SYS_rt_sigreturn, %rax; syscall. */
static bool is_sigreturn(const void *pc)
{
    return memcmp(pc, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9) == 0;
}

/*
 * Returns how many PCs are equal, from the first of ours on; ours have the next PC instead of an
 * interrupted one.
 */
static size_t same_pcs(const struct stacks *s)
{
    bool interrupted = false;
    size_t same = 0;
    for (; same < s->n && same + s->skipped < s->their_n; same++) {
        void *theirs = s->theirs[same + s->skipped];
        if (s->ours[same] != (uintptr_t)theirs + interrupted)
            break;
        interrupted = is_sigreturn(theirs);
    }
    return same;
}

static bool find_first(struct stacks *s, uintptr_t pc)
{
    for (s->skipped = 0; s->skipped < s->their_n; s->skipped++) {
        if ((uintptr_t)s->theirs[s->skipped] == pc)
            return true;
    }
    return false;
}

/* Compares the stack of the caller; returns whether it is equal to the end. */
static NOINLINE bool check_caller(struct stacks *s)
{
    struct unwind_start start = unwind_caller_of(__builtin_frame_address(0));
    s->n = unwind_stack(&start, stack_end(), s->ours, MAX_PCS);
    s->their_n = (size_t)backtrace(s->theirs, MAX_PCS);
    if (find_first(s, start.pc) && same_pcs(s) == s->n && s->n + s->skipped == s->their_n)
        return true;
    describe(s, "the caller's stack");
    return false;
}

/* Atomic: comparisons in threads and signal handlers. */
static unsigned checked, wrong;

static NOINLINE void check(void)
{
    struct stacks s;
    __atomic_fetch_add(&checked, 1, __ATOMIC_RELAXED);
    if (!check_caller(&s))
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    STAY();
}

static int begin(void **unused)
{
    void *one;
    (void)unused;
    (void)backtrace(&one, 1); /* loads libgcc */
    __atomic_store_n(&checked, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&wrong, 0, __ATOMIC_RELAXED);
    return 0;
}

static void expect_checked(unsigned at_least)
{
    assert_int_equal(wrong, 0);
    assert_true(checked >= at_least);
}

/* MARK: Frames of all kinds */

/* Hides from the compiler how the memory is used. */
static void use(void *memory)
{
    __asm__ volatile("" ::"r"(memory) : "memory");
}

static NOINLINE void in_small(void (*what)(void))
{
    what();
    STAY();
}

static NOINLINE void in_array(void (*what)(void))
{
    char bytes[1000];
    use(bytes);
    in_small(what);
    use(bytes);
}

static NOINLINE void in_alloca(void (*what)(void), size_t size)
{
    char *bytes = __builtin_alloca(size);
    use(bytes);
    in_array(what);
    use(bytes);
}

/* Not static, so that the loader can name it. */
NOINLINE void in_aligned(void (*what)(void), size_t size);
void in_aligned(void (*what)(void), size_t size)
{
    _Alignas(64) char line[64];
    use(line);
    in_alloca(what, size);
    use(line);
}

/* Both: gcc addresses the arguments by a separate register. */
NOINLINE void in_aligned_alloca(void (*what)(void), size_t size, long a, long b, long c, long d,
                                long e, long f);
void in_aligned_alloca(void (*what)(void), size_t size, long a, long b, long c, long d, long e,
                       long f)
{
    _Alignas(128) char line[128];
    char *bytes = __builtin_alloca(size);
    use(line);
    use(bytes);
    in_aligned(what, size + (size_t)(a + b + c + d + e + f));
    use(line);
    use(bytes);
}

/*
 * Its frame has no fixed size, so its caller is found only by the frame pointer saved by the
 * function below.
 */
static NOINLINE void in_alloca_above_aligned(void (*what)(void), size_t size)
{
    char *bytes = __builtin_alloca(size);
    use(bytes);
    in_aligned_alloca(what, size, 1, 2, 3, 4, 5, 6);
    use(bytes);
}

/* Uses all callee-saved registers, including the frame pointer where it has no other use. */
static NOINLINE void in_many_registers(void (*what)(void), long a, long b, long c, long d, long e,
                                       long f)
{
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    in_aligned_alloca(what, 100, a, b, c, d, e, f);
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
}

/* A frame too large for the table's words. */
static NOINLINE void in_megabytes(void (*what)(void))
{
    char bytes[3 << 19];
    use(bytes);
    in_many_registers(what, 1, 2, 3, 4, 5, 6);
    in_alloca_above_aligned(what, 300);
    use(bytes);
}

static NOINLINE void in_all(void (*what)(void))
{
    in_megabytes(what);
    STAY();
}

static void nothing(void)
{
}

TEST(frames_of_all_kinds)
{
    /* Read from the tables the first time, then cached. */
    for (int i = 0; i < 3; i++) {
        in_all(check);
        in_many_registers(check, 6, 5, 4, 3, 2, 1);
    }
    unwind_forget();
    in_all(check);
    expect_checked(11);
}

static NOINLINE void recurse(unsigned depth, void (*what)(void))
{
    if (depth > 0)
        recurse(depth - 1, what);
    else
        what();
    STAY();
}

static NOINLINE size_t walk_here(size_t max, uintptr_t *pcs)
{
    struct unwind_start start = unwind_caller_of(__builtin_frame_address(0));
    return unwind_stack(&start, stack_end(), pcs, max);
}

static size_t wanted;

static void check_cut(void)
{
    uintptr_t pcs[MAX_PCS], all[MAX_PCS];
    memset(pcs, 0xaa, sizeof pcs);
    assert_int_equal(walk_here(MAX_PCS, all), MAX_PCS);
    assert_int_equal(walk_here(wanted, pcs), wanted);
    for (size_t i = 1; i < wanted; i++)
        assert_int_equal(pcs[i], all[i]);
    for (size_t i = wanted; i < MAX_PCS; i++)
        assert_int_equal(pcs[i], (uintptr_t)0xaaaaaaaaaaaaaaaa);
}

TEST(deeper_than_max_is_cut)
{
    recurse(100, check);
    expect_checked(1);
    for (wanted = 0; wanted < 20; wanted++)
        recurse(2 * MAX_PCS, check_cut);
}

TEST(without_a_known_end_there_is_one_pc)
{
    struct unwind_start start = unwind_caller_of(__builtin_frame_address(0));
    uintptr_t pcs[4] = {0};
    assert_int_equal(unwind_stack(&start, 0, pcs, 4), 1);
    assert_int_equal(pcs[0], start.pc);
    assert_int_equal(unwind_stack(&start, start.sp, pcs, 4), 1);
    assert_int_equal(unwind_stack(&start, start.sp + 7, pcs, 4), 1);
    assert_int_equal(unwind_stack(&start, stack_end(), pcs, 0), 0);
}

/* MARK: Through other code */

static int compare(const void *a, const void *b)
{
    in_many_registers(check, 1, 2, 3, 4, 5, 6);
    return *(const int *)a - *(const int *)b;
}

static void once(void)
{
    in_array(check);
}

static void visit(const void *node, VISIT which, int depth)
{
    (void)node;
    (void)which;
    (void)depth;
    in_array(check);
}

TEST(callbacks_of_the_c_library)
{
    int numbers[] = {5, 2, 4, 1, 3}, key = 3;
    pthread_once_t control = PTHREAD_ONCE_INIT;
    void *root = NULL;
    qsort(numbers, 5, sizeof numbers[0], compare);
    (void)bsearch(&key, numbers, 5, sizeof numbers[0], compare);
    /* NOLINTNEXTLINE(clang-analyzer-unix.API): no other code has it. */
    (void)pthread_once(&control, once);
    for (int i = 0; i < 5; i++)
        (void)tsearch(&numbers[i], &root, compare);
    twalk(root, visit);
    tdestroy(root, use);
    expect_checked(20);
}

static void on_signal(int number)
{
    (void)number;
    in_array(check);
}

static void signal_by(int flags, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

static void raise_signal(void)
{
    (void)raise(SIGUSR1);
    STAY();
}

static void *signal_in_thread(void *unused)
{
    (void)stack_end(); /* not for the first time in a signal handler */
    in_many_registers(raise_signal, 1, 2, 3, 4, 5, 6);
    return unused;
}

static void on_two_signals(int number)
{
    if (number == SIGUSR1) {
        signal_by(0, on_signal);
        in_aligned(raise_signal, 10);
    }
}

TEST(through_signal_handlers)
{
    pthread_t thread;
    signal_by(0, on_signal);
    in_many_registers(raise_signal, 1, 2, 3, 4, 5, 6);
    assert_int_equal(pthread_create(&thread, NULL, signal_in_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    /* And a signal within a signal. */
    signal_by(SA_NODEFER, on_two_signals);
    in_small(raise_signal);
    expect_checked(3);
}

static char signal_stack[1 << 16];
static struct stacks on_signal_stack;
static uintptr_t signal_stack_end;

static NOINLINE void look_on_signal_stack(void)
{
    struct unwind_start start = unwind_caller_of(__builtin_frame_address(0));
    struct stacks *s = &on_signal_stack;
    s->n = unwind_stack(&start, signal_stack_end, s->ours, MAX_PCS);
    s->their_n = (size_t)backtrace(s->theirs, MAX_PCS);
    (void)find_first(s, start.pc);
    STAY();
}

static void on_signal_elsewhere(int number)
{
    (void)number;
    look_on_signal_stack();
    STAY();
}

/* The handler, the return to the kernel, the interrupted PC; nothing of the stack that was left. */
TEST(a_stack_of_its_own_for_signals)
{
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack}, old;
    const struct stacks *s = &on_signal_stack;
    bool whole;
    assert_int_equal(sigaltstack(&stack, &old), 0);
    signal_by(SA_ONSTACK, on_signal_elsewhere);
    signal_stack_end = (uintptr_t)signal_stack + sizeof signal_stack;
    in_small(raise_signal);
    whole = same_pcs(s) == s->n && s->n >= 3 && is_sigreturn((void *)s->ours[s->n - 2]);
    if (!whole)
        describe(s, "on the signal's stack");
    assert_true(whole);
    assert_true(s->n + s->skipped < s->their_n);
    signal_stack_end = 0;
    in_small(raise_signal);
    assert_int_equal(s->n, 1);
    assert_int_equal(sigaltstack(&old, NULL), 0);
}

/* As coroutines use. TSan needs a call for each change of stacks. */
#if !defined(__SANITIZE_THREAD__)
static ucontext_t outside, inside;
static uintptr_t coroutine_end;

static NOINLINE void look_in_coroutine(uintptr_t low, uintptr_t high, bool whole)
{
    struct unwind_start start = unwind_caller_of(__builtin_frame_address(0));
    uintptr_t end = unwind_end(start.sp, low, high);
    struct stacks s;
    s.n = unwind_stack(&start, end, s.ours, MAX_PCS);
    s.their_n = (size_t)backtrace(s.theirs, MAX_PCS);
    checked++;
    if (find_first(&s, start.pc) && same_pcs(&s) == s.n && end <= coroutine_end &&
        (!whole || s.n + s.skipped == s.their_n))
        return;
    describe(&s, "in a coroutine");
    wrong++;
}

static void look_from_coroutine(void)
{
    uintptr_t high = stack_end();
    look_in_coroutine(high - (1 << 20), high, false);
    look_in_coroutine(coroutine_end - (1 << 16), coroutine_end, true);
    STAY();
}

static void coroutine(void)
{
    in_aligned(look_from_coroutine, 10);
    in_megabytes(nothing);
    STAY();
}

TEST(stacks_of_coroutines)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 1024 * page;
    char *map =
        mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    (void)stack_end();
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map + page, size, PROT_READ | PROT_WRITE), 0);
    coroutine_end = (uintptr_t)map + page + size;
    assert_int_equal(getcontext(&inside), 0);
    inside.uc_stack = (stack_t){.ss_sp = map + page, .ss_size = size};
    inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    assert_int_equal(swapcontext(&outside, &inside), 0);
    assert_int_equal(munmap(map, size + 2 * page), 0);
    expect_checked(2);
}
#endif

/* MARK: Every instruction */

#if defined(__x86_64__)

static struct {
    unsigned steps, full, in_loader, realigning, others;
    uintptr_t end;
} stepped;

static bool is_in_loader(uintptr_t pc)
{
    Dl_info info;
    return dladdr((void *)(pc - 1), &info) && strstr(info.dli_fname, "ld-linux");
}

/*
 * Where gcc sets up or removes such a frame, its end is in a register that is not known at the
 * start of a walk.
 */
static bool is_realigning(uintptr_t pc)
{
    Dl_info info;
    return dladdr((void *)pc, &info) && info.dli_sname && strstr(info.dli_sname, "in_aligned");
}

/* From the interrupted PC on, ours and theirs. */
static void compare_stepped(struct stacks *s, uintptr_t pc)
{
    size_t same;
    s->ours[0]--;
    if (!find_first(s, pc)) {
        stepped.others++;
        describe(s, "an instruction that backtrace does not have");
        return;
    }
    same = same_pcs(s);
    if (same == s->n && same + s->skipped == s->their_n) {
        stepped.full++;
    } else if (same == s->n && is_in_loader(s->ours[same - 1])) {
        /*
         * The code that resolves a symbol at its first call addresses its frame by a register that
         * is not tracked.
         */
        stepped.in_loader++;
    } else if (same == 1 && s->n == 1 && is_realigning(pc)) {
        stepped.realigning++;
    } else if (stepped.others++ < 3) {
        describe(s, "an instruction");
    }
}

static void on_step(int number, siginfo_t *info, void *context)
{
    struct unwind_start start = unwind_interrupted(context);
    struct stacks s;
    (void)number;
    (void)info;
    stepped.steps++;
    s.n = unwind_stack(&start, stepped.end, s.ours, MAX_PCS);
    s.their_n = (size_t)backtrace(s.theirs, MAX_PCS);
    compare_stepped(&s, start.pc - 1);
}

/* The processor's trap flag. */
#define TRAP_ON()  __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "cc", "memory")
#define TRAP_OFF() __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "cc", "memory")

static int compare_only(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void work(void)
{
    int numbers[] = {5, 2, 4, 1, 3}, key = 3;
    struct timespec now;
    char text[64];
    qsort(numbers, 5, sizeof numbers[0], compare_only);
    (void)bsearch(&key, numbers, 5, sizeof numbers[0], compare_only);
    (void)snprintf(text, sizeof text, "%d %s %f", numbers[0], "text", 1.5);
    /* Not called before: resolved now, if symbols are bound lazily. */
    (void)ffsll(numbers[1]);
    (void)getppid();
    /* The kernel's own library. */
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    free(malloc(100));
}

/*
 * Between pushfq and popfq, the stack is a word deeper than the tables state. This function's frame
 * has no fixed size, so it is found by its frame pointer.
 */
static NOINLINE void step_through(size_t size)
{
    char *room = __builtin_alloca(size);
    use(room);
    TRAP_ON();
    in_megabytes(nothing);
    recurse(3, work);
    TRAP_OFF();
    use(room);
}

TEST(every_instruction)
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO}, old;
    memset(&stepped, 0, sizeof stepped);
    stepped.end = stack_end();
    assert_int_equal(sigaction(SIGTRAP, &action, &old), 0);
    step_through(256);
    assert_int_equal(sigaction(SIGTRAP, &old, NULL), 0);
    print_message(
        "# %u instructions: %u whole stacks, %u end in the loader, %u where a frame is made\n",
        stepped.steps, stepped.full, stepped.in_loader, stepped.realigning);
    assert_true(stepped.realigning <= 50);
    assert_true(stepped.steps > 1000);
    assert_true(stepped.full > 1000);
    assert_int_equal(stepped.others, 0);
}

#endif

/* MARK: Libraries */

typedef void with_callback(void (*what)(void));

static void *open_library(const char *path)
{
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (path && !library)
        print_message("# %s\n", dlerror());
    return library;
}

static with_callback *function_of(void *library, const char *name)
{
    with_callback *function;
    *(void **)&function = dlsym(library, name);
    assert_non_null(function);
    return function;
}

static uintptr_t pc_in_library;

static void check_in_library(void)
{
    uintptr_t pcs[8];
    assert_true(walk_here(8, pcs) > 3);
    pc_in_library = pcs[1];
    in_small(check);
}

static uintptr_t visit_library(const char *path)
{
    void *library = open_library(path);
    assert_non_null(library);
    function_of(library, "call_back")(check_in_library);
    assert_int_equal(dlclose(library), 0);
    unwind_forget();
    return pc_in_library;
}

/*
 * The two libraries differ only in the size of a frame: one is loaded at the address of the other.
 */
TEST(a_library_in_the_place_of_another)
{
    const char *small = getenv("TRAIL_TEST_SMALL"), *large = getenv("TRAIL_TEST_LARGE");
    unsigned same = 0;
    if (!small || !large)
        skip();
    for (int i = 0; i < 4; i++)
        same += visit_library(small) == visit_library(large);
    if (same == 0)
        print_message("# they were never at the same address\n");
    expect_checked(8);
}

TEST(code_with_exceptions)
{
    const char *path = getenv("TRAIL_TEST_CXX");
    void *library;
    if (!path)
        skip();
    library = open_library(path);
    assert_non_null(library);
    function_of(library, "call_in_catch")(check);
    function_of(library, "call_in_destructor")(check);
    function_of(library, "call_in_lambda")(check);
    assert_int_equal(dlclose(library), 0);
    unwind_forget();
    expect_checked(3);
}

/* MARK: Threads */

static void *check_in_thread(void *what)
{
    in_many_registers(*(void (**)(void))what, 1, 2, 3, 4, 5, 6);
    return NULL;
}

TEST(threads_by_the_thousand)
{
    void (*what)(void) = check;
    pthread_t threads[8];
    for (int round = 0; round < 128; round++) {
        for (int i = 0; i < 8; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, check_in_thread, &what), 0);
        for (int i = 0; i < 8; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    expect_checked(1024);
}

/* Functions with different return addresses. */
#define FUNCTION(n)                                                                                \
    static NOINLINE void function_##n(void)                                                        \
    {                                                                                              \
        char bytes[16 + (n)*16];                                                                   \
        use(bytes);                                                                                \
        in_small(check);                                                                           \
        use(bytes);                                                                                \
    }
#define FUNCTIONS(apply)                                                                           \
    apply(0) apply(1) apply(2) apply(3) apply(4) apply(5) apply(6) apply(7) apply(8) apply(9)      \
        apply(10) apply(11) apply(12) apply(13) apply(14) apply(15) apply(16) apply(17) apply(18)  \
            apply(19) apply(20) apply(21) apply(22) apply(23) apply(24) apply(25) apply(26)        \
                apply(27)
FUNCTIONS(FUNCTION)
#define NAME(n) function_##n,
static void (*const functions[])(void) = {FUNCTIONS(NAME)};

#define N_FUNCTIONS (sizeof functions / sizeof functions[0])

static void *check_all(void *first)
{
    for (size_t i = 0; i < 40 * N_FUNCTIONS; i++)
        functions[(i * 5 + (size_t)first) % N_FUNCTIONS]();
    return NULL;
}

static bool stop_forgetting; /* atomic */

static void *forget_all(void *unused)
{
    while (!__atomic_load_n(&stop_forgetting, __ATOMIC_RELAXED))
        unwind_forget();
    return unused;
}

TEST(many_walk_while_one_forgets)
{
    pthread_t threads[4], forgetting;
    stop_forgetting = false;
    assert_int_equal(pthread_create(&forgetting, NULL, forget_all, NULL), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_all, (void *)i), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    __atomic_store_n(&stop_forgetting, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(forgetting, NULL), 0);
    expect_checked((size_t)4 * 40 * N_FUNCTIONS);
}

/* MARK: Memory */

#if defined(__x86_64__)

/* Returns how many pages of the program's zero-initialized variables are in memory. */
static size_t pages_of_variables(void)
{
    extern char variables[] __asm__("__bss_start"), variables_end[] __asm__("_end");
    static unsigned char resident[1 << 16];
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t low = (uintptr_t)variables & -page,
              high = ((uintptr_t)variables_end + page - 1) & -page;
    size_t n = (high - low) / page, sum = 0;
    assert_true(n <= sizeof resident);
    assert_int_equal(mincore((void *)low, high - low, resident), 0);
    for (size_t i = 0; i < n; i++)
        sum += resident[i] & 1;
    return sum;
}

/* Most functions have their rules in different pages of the table. */
TEST(what_is_forgotten_takes_no_memory)
{
    size_t before;
    unwind_forget();
    before = pages_of_variables();
    for (size_t i = 0; i < N_FUNCTIONS; i++)
        functions[i]();
    assert_true(pages_of_variables() >= before + N_FUNCTIONS / 2);
    unwind_forget();
    assert_true(pages_of_variables() <= before + 4);
}

#endif

/* MARK: Any stack */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* A return address to somewhere, a pointer into the stack, a small number, or any value. */
static uintptr_t random_word(uint64_t *state, const uintptr_t *pcs, size_t n, uintptr_t low,
                             size_t size)
{
    switch (next_random(state) % 8) {
    case 0:
        return low + next_random(state) % size;
    case 1:
        return low + next_random(state) % size / 8 * 8;
    case 2:
        return next_random(state) % 64;
    case 3:
        return (uintptr_t)(next_random(state) << 33 | next_random(state));
    default:
        return pcs[next_random(state) % n] + (next_random(state) % 16 == 0);
    }
}

static uintptr_t known_pcs[MAX_PCS];
static size_t known;

static void keep_pcs(void)
{
    known += walk_here(MAX_PCS - known, known_pcs + known);
}

static void keep_pcs_of_signal(int number)
{
    (void)number;
    keep_pcs();
}

/* Some of them with special rules: realigned frames, large ones, a signal's, none. */
static void learn_pcs(void)
{
    known = 0;
    signal_by(0, keep_pcs_of_signal);
    in_many_registers(raise_signal, 1, 2, 3, 4, 5, 6);
    in_all(keep_pcs);
    for (size_t i = 0; i < 16; i++)
        known_pcs[known++] = (uintptr_t)&qsort + i;
    /* In no module, and not code. */
    known_pcs[known++] = (uintptr_t)&known_pcs;
    known_pcs[known++] = 0x10000;
}

/* Between two inaccessible pages. */
TEST(nothing_but_the_stack_is_read)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t low = (uintptr_t)map + page, pcs[MAX_PCS];
    uint64_t state = 1;
    size_t longest = 0;
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map + page, page, PROT_READ | PROT_WRITE), 0);
    learn_pcs();
    for (int i = 0; i < 100000; i++) {
        uintptr_t *words = (uintptr_t *)low;
        size_t n, first = next_random(&state) % 512, count = 512 - first;
        struct unwind_start start;
        for (size_t k = 0; k < 32; k++)
            words[next_random(&state) % 512] = random_word(&state, known_pcs, known, low, page);
        start.sp = low + first * 8 + (next_random(&state) % 64 == 0);
        start.pc = random_word(&state, known_pcs, known, low, page);
        start.fp = random_word(&state, known_pcs, known, low, page);
        n = unwind_stack(&start, low + page, pcs, MAX_PCS);
        assert_in_range(n, 1, count + 1);
        longest = n > longest ? n : longest;
    }
    assert_true(longest > 5);
    assert_int_equal(munmap(map, 3 * page), 0);
}

/* MARK: Any PC */

#if defined(__x86_64__)

/* Rules that compilers rarely or never emit. */
void rare_rules(void);
extern const char rare_rules_end[];
__asm__(".pushsection .text\n"
        ".globl rare_rules, rare_rules_end\n"
        ".type rare_rules, @function\n"
        "rare_rules: .cfi_startproc\n"
        "nop\n .cfi_def_cfa rsp, 16000\n"
        "nop\n .cfi_offset rbp, -4080\n"
        "nop\n .cfi_offset rbp, -4088\n"
        "nop\n .cfi_offset rbp, -4096\n"
        "nop\n .cfi_offset rbp, -12000\n"
        "nop\n .cfi_undefined rbp\n"
        "nop\n .cfi_same_value rbp\n"
        "nop\n .cfi_register rbp, rbx\n"
        "nop\n .cfi_restore rbp\n"
        "nop\n .cfi_def_cfa rbp, 16\n"
        "nop\n .cfi_remember_state\n .cfi_def_cfa rsp, 24\n .cfi_offset rbp, -24\n"
        "nop\n .cfi_restore_state\n"
        "nop\n .cfi_escape 0x0f, 5, 0x77, 32, 0x06, 0x23, 8\n" /* the end is at *(rsp + 32) + 8 */
        "nop\n .cfi_endproc\n"
        "rare_rules_end:\n"
        ".size rare_rules, . - rare_rules\n"
        ".popsection\n");

struct text {
    const char *name;
    struct cfi_module module;
    struct cfi_range code;
};

static int see_text(struct dl_phdr_info *info, size_t size, void *context)
{
    struct text *text = context;
    (void)size;
    if (text->name ? !strstr(info->dlpi_name, text->name) : info->dlpi_name[0] != 0)
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + header->p_vaddr;
        struct cfi_range range = {low, low + header->p_memsz};
        if (header->p_type == PT_GNU_EH_FRAME)
            text->module.header = range;
        if (header->p_type == PT_LOAD && header->p_flags & PF_R)
            text->module.readable[text->module.ranges++] = range;
        if (header->p_type == PT_LOAD && header->p_flags & PF_X)
            text->code = range;
    }
    return 1;
}

/*
 * A stack whose words encode their positions. Words in the lower half point to their partners in
 * the upper half, so that each may be a frame pointer and none is code; words in the upper half are
 * PCs outside of all modules.
 */
#define HALF 2048
static uintptr_t fake[2 * HALF];

static void fill_fake(void)
{
    for (size_t i = 0; i < HALF; i++) {
        fake[i] = (uintptr_t)(fake + HALF + i);
        fake[HALF + i] = 0x10000 + 8 * i;
    }
}

static bool is_in_fake(uintptr_t at, uintptr_t low)
{
    return at >= low && at <= (uintptr_t)(fake + (size_t)2 * HALF - 1);
}

static uintptr_t fake_word(uintptr_t at)
{
    return fake[(at - (uintptr_t)fake) / 8];
}

/*
 * The PC after a step shows the frame's end; the next one, found by frame pointer, shows the
 * caller's frame.
 */
static size_t expect_steps(const struct cfi_rule *rule, const struct unwind_start *start,
                           uintptr_t *pcs)
{
    uintptr_t end = rule->base == CFI_FP ? start->fp : start->sp, fp = start->fp, saved;
    if (rule->indirect && !is_in_fake(end + (uintptr_t)rule->inner, start->sp))
        return 1;
    if (rule->indirect)
        end = fake_word(end + (uintptr_t)rule->inner);
    end += (uintptr_t)rule->offset;
    if (!is_in_fake(end - 8, start->sp))
        return 1;
    pcs[1] = fake_word(end - 8);
    saved = (rule->fp == CFI_FP_AT_FP ? start->fp : end) + (uintptr_t)rule->fp_offset;
    if (rule->fp == CFI_FP_LOST)
        return 2;
    if (rule->fp != CFI_FP_SAME && saved >= start->sp)
        fp = fake_word(saved);
    if (!is_in_fake(fp, end) || !is_in_fake(fp + 8, end))
        return 2;
    pcs[2] = fake_word(fp + 8);
    return is_in_fake(pcs[2], end) ? 2 : 3;
}

/* Statistics about a library. */
static unsigned frames, with_fp;

static void check_pc(const struct text *text, uintptr_t pc)
{
    struct unwind_start start = {pc, (uintptr_t)(fake + 16), (uintptr_t)(fake + 1024)};
    struct cfi_rule rule = cfi_find(&text->module, pc - 1);
    uintptr_t end = (uintptr_t)(fake + (size_t)2 * HALF), pcs[3] = {0}, expected[3] = {0};
    if (rule.kind != CFI_FRAME)
        return;
    frames++;
    /* First read, if not cached or displaced; then from the cache. */
    for (int twice = 0; twice < 2; twice++) {
        size_t n = unwind_stack(&start, end, pcs, 3);
        with_fp += n == 3;
        if (n != expect_steps(&rule, &start, expected))
            fail_msg("%#zx in %s: %zu PCs", pc, text->name ? text->name : "the program", n);
        for (size_t i = 1; i < n; i++)
            assert_int_equal(pcs[i], expected[i]);
    }
}

static void check_pcs(const char *name, uintptr_t from, uintptr_t to)
{
    struct text text = {.name = name};
    if (dl_iterate_phdr(see_text, &text) != 1) {
        print_message("# no %s\n", name);
        return;
    }
    if (!from) {
        from = text.code.low + 1;
        to = text.code.low + 100000;
    }
    frames = with_fp = 0;
    for (int round = 0; round < 2; round++) {
        for (uintptr_t pc = from; pc < to; pc++)
            check_pc(&text, pc);
    }
    print_message("# %s: %u frames, %u with the caller's frame pointer\n",
                  name ? name : "rare rules", frames / 2, with_fp / 4);
}

/* More PCs than the table has room for, so that they displace each other; each must match its
 * rule. */
TEST(every_pc_of_libraries)
{
    fill_fake();
    check_pcs("/libc.so", 0, 0);
    assert_true(frames > 150000 && with_fp > 200000);
    (void)dlopen("libcrypto.so.3", RTLD_NOW);
    check_pcs("/libcrypto.so", 0, 0);
}

TEST(rare_rules_are_followed)
{
    fill_fake();
    check_pcs(NULL, (uintptr_t)&rare_rules + 1, (uintptr_t)rare_rules_end + 1);
    assert_true(frames >= 2 * 12);
}

#endif

int main(void)
{
    each_test(begin, NULL);
    return run_all_tests(NULL, NULL);
}
