/* Which frames name a place, and how the functions called there are shown. */
#include <string.h>

#include "../lib/unit.h"
#include "words/function_name.h"
#include "words/place.h"
#include "words/runtimes.h"
#include "words/wait_classes.h"
#include "words/wrappers.h"

static trail_string text(const char *data)
{
    return (trail_string){data, strlen(data)};
}

struct ranked {
    const char *function, *file;
    enum frame_rank rank;
};

static void check(const char *const *skip, const struct ranked *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        enum frame_rank rank = frame_rank(skip, text(cases[i].function), text(cases[i].file));
        if (rank != cases[i].rank)
            fail_msg("%s in '%s' has rank %d, not %d", cases[i].function, cases[i].file, rank,
                     cases[i].rank);
    }
}
#define CHECK(skip, cases) check(skip, cases, sizeof(cases) / sizeof(cases)[0])

TEST(waits_and_locks_of_libraries_name_no_place)
{
    static const struct ranked cases[] = {
        {"pthread_mutex_lock", "", FRAME_WRAPPER},
        {"trail::record::Region::new", "", FRAME_WRAPPER},
        {"<trail::record::Region as core::ops::drop::Drop>::drop", "", FRAME_WRAPPER},
        {"core::ptr::drop_in_place<trail::record::Region>", "", FRAME_WRAPPER},
        {"___pthread_cond_wait", "", FRAME_WRAPPER},
        {"__futex_abstimed_wait_common", "../sysdeps/nptl/futex-internal.h", FRAME_WRAPPER},
        {"lll_mutex_lock_optimized", "nptl/pthread_mutex_lock.c", FRAME_WRAPPER},
        {"std::mutex::lock()", "/usr/include/c++/12/bits/std_mutex.h", FRAME_WRAPPER},
        {"void std::this_thread::sleep_for<long, std::ratio<1l, 1000l> >(std::chrono::duration<"
         "long, std::ratio<1l, 1000l> > const&)",
         "", FRAME_WRAPPER},
        {"decltype (::new ((void*)(0)) std::jthread((declval<int>)())) "
         "std::construct_at<std::jthread, int>(std::jthread*, int&&)",
         "", FRAME_WRAPPER},
        /* Names of abstract instances have no scope: only the file is known. */
        {"_M_invoke<0, 1>", "/usr/include/c++/12/bits/std_thread.h", FRAME_WRAPPER},
        {"__gthread_mutex_lock", "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h",
         FRAME_WRAPPER},
        {"operator()", "/usr/lib/llvm-14/include/c++/v1/__functional/invoke.h", FRAME_WRAPPER},
        {"operator new(unsigned long)", "", FRAME_WRAPPER},
        {"boost::condition_variable::wait(boost::unique_lock<boost::mutex>&)", "", FRAME_WRAPPER},
        {"absl::Mutex::Lock()", "/src/absl/synchronization/mutex.cc", FRAME_WRAPPER},
        {"tbb::detail::r1::wait(tbb::detail::d1::wait_context&)", "", FRAME_WRAPPER},
        {"folly::Baton<true>::wait()", "", FRAME_WRAPPER},
        {"uv_cond_wait", "/home/a/libuv/src/unix/thread.c", FRAME_WRAPPER},
        {"g_cond_wait", "", FRAME_WRAPPER},
        {"g_cond_wait", "../../../glib/gthread-posix.c", FRAME_WRAPPER},
        {"QWaitCondition::wait(QMutex*, QDeadlineTimer)", "", FRAME_WRAPPER},
        {"PyThread_acquire_lock_timed", "/src/Python/thread_pthread.h", FRAME_WRAPPER},
        {"rb_native_cond_wait", "", FRAME_WRAPPER},
        {"gomp_barrier_wait_end", "", FRAME_WRAPPER},
        {"__kmp_fork_call", "", FRAME_WRAPPER},
        {"<std::sync::Mutex<T> as core::fmt::Debug>::fmt", "", FRAME_WRAPPER},
        {"rayon_core::registry::WorkerThread::wait_until_cold", "", FRAME_WRAPPER},
        {"take_gil", "/src/Python/ceval_gil.h", FRAME_WRAPPER},
        {"drop_gil", "/src/Python/ceval_gil.h", FRAME_WRAPPER},
        {"ObjectMonitor::ExitEpilog(JavaThread*, ObjectWaiter*)", "", FRAME_WRAPPER},
        {"core::ops::function::FnOnce::call_once", "/rustc/9fc6b4/library/core/src/ops/function.rs",
         FRAME_WRAPPER},
        {"<alloc::boxed::Box<dyn core::ops::function::FnOnce<, Output = > + core::marker::Send> as "
         "core::ops::function::FnOnce<>>::call_once",
         "library/alloc/src/boxed.rs", FRAME_WRAPPER},
        {"read", "", FRAME_WRAPPER},
    };
    CHECK(NULL, cases);
}

TEST(functions_of_the_program_name_their_place)
{
    static const struct ranked cases[] = {
        {"latch_waiter", "/src/cpp20.cpp", FRAME_OWN},
        {"main", "", FRAME_OWN},
        {"Pool<std::mutex>::run(std::function<void ()>)", "/src/pool.h", FRAME_OWN},
        {"std::string work<int>(int)", "/src/a.cpp", FRAME_OWN},
        /* Named like a C library function, but in a file of the program. */
        {"read", "/src/app.c", FRAME_OWN},
        {"sem_down", "/src/app.c", FRAME_OWN},
        {"g_state", "/src/app.c", FRAME_OWN},
        {"__helper", "/src/app.c", FRAME_OWN},
        {"core::Engine::step()", "/src/engine.cpp", FRAME_OWN},
        {"readers", "", FRAME_OWN},
        {"main._omp_fn.0", "", FRAME_OWN},
        {"standard::run()", "", FRAME_OWN},
    };
    CHECK(NULL, cases);
}

TEST(an_address_is_worse_than_a_name_and_better_than_a_wrapper)
{
    static const struct ranked cases[] = {
        {"app+0x1234", "", FRAME_ADDRESS},
        {"libc.so.6+0x891f6", "", FRAME_NAMELESS},
        {"libstdc++.so.6+0xd44a2", "", FRAME_NAMELESS},
        {"", "", FRAME_NAMELESS},
        {"add+0x", "", FRAME_OWN},
    };
    CHECK(NULL, cases);
    assert_true(FRAME_OWN > FRAME_ADDRESS && FRAME_ADDRESS > FRAME_WRAPPER &&
                FRAME_WRAPPER > FRAME_NAMELESS);
}

TEST(what_runs_a_script_is_worse_than_a_function_of_it)
{
    static const struct ranked cases[] = {
        {"_PyEval_EvalFrameDefault", "", FRAME_RUNTIME},
        {"v8::internal::Builtin_HandleApiCall(int, unsigned long*, v8::internal::Isolate*)", "",
         FRAME_RUNTIME},
        {"readSync", "node:fs", FRAME_WRAPPER},
        {"read_it", "/srv/app.py", FRAME_OWN},
    };
    CHECK(NULL, cases);
    assert_true(FRAME_OWN > FRAME_RUNTIME && FRAME_RUNTIME > FRAME_ADDRESS);
}

TEST(go_has_a_rule_of_its_own)
{
    static const struct ranked cases[] = {
        {"runtime.gopark", "/go/src/runtime/proc.go", FRAME_WRAPPER},
        {"sync.(*Mutex).Lock", "/go/src/sync/mutex.go", FRAME_WRAPPER},
        {"internal/poll.(*FD).Read", "/go/src/internal/poll/fd_unix.go", FRAME_WRAPPER},
        {"syscall.Syscall", "", FRAME_WRAPPER},
        {"main._Cfunc_usleep", "_cgo_gotypes.go", FRAME_WRAPPER},
        {"net.(*conn).Read", "/go/src/net/net.go", FRAME_OWN},
        {"uv_x.Run", "/src/uv_x/run.go", FRAME_OWN},
        {"gomp_test.main", "/usr/include/c++/main.go", FRAME_OWN},
        {"synchronous.Run", "/src/run.go", FRAME_OWN},
    };
    CHECK(NULL, cases);
}

TEST(patterns_of_the_user_add_to_the_table)
{
    static const char *const skip[] = {"pool::*", "file:*/pool/*", "wait_until_*_done", "exact",
                                       NULL};
    static const struct ranked cases[] = {
        {"void pool::Queue<int>::pop(int&)", "/src/q.h", FRAME_WRAPPER},
        {"run", "/src/pool/run.c", FRAME_WRAPPER},
        {"run", "/src/pool.c", FRAME_OWN},
        {"wait_until_all_done", "", FRAME_WRAPPER},
        {"wait_until_all_don", "", FRAME_OWN},
        {"exact", "/src/a.c", FRAME_WRAPPER},
        {"exact<int>(int)", "/src/a.c", FRAME_WRAPPER},
        {"exactly", "/src/a.c", FRAME_OWN},
        {"main.exact", "main.go", FRAME_OWN},
        {"pthread_join", "", FRAME_WRAPPER},
    };
    CHECK(skip, cases);
    static const char *const go[] = {"main.Lock*", NULL};
    assert_int_equal(frame_rank(go, text("main.LockAll"), text("/src/main.go")), FRAME_WRAPPER);
}

TEST(a_pattern_that_covers_everything_is_none)
{
    static const char *const good[] = {"a", "*a", "file:x*", "operator new*", "files:*"};
    static const char *const bad[] = {"*", "**", "file:", "file:*", "a\tb"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_null(skip_pattern_error(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(skip_pattern_error(bad[i]));
}

TEST(names_are_without_result_parameters_and_inner_arguments)
{
    static const char *const cases[][2] = {
        {"void std::this_thread::sleep_for<long, std::ratio<1l, 1000l> "
         ">(std::chrono::duration<long, "
         "std::ratio<1l, 1000l> > const&)",
         "std::this_thread::sleep_for<long, ratio<...>>"},
        {"sleep_for<long, std::ratio<1, 1000> >", "sleep_for<long, ratio<...>>"},
        {"main", "main"},
        {"work(int, char**)", "work"},
        {"std::latch::wait() const", "std::latch::wait"},
        {"Pool::~Pool()", "Pool::~Pool"},
        {"Pool<std::mutex>::run(std::function<void ()>)", "Pool<mutex>::run"},
        {"(anonymous namespace)::work(int)", "(anonymous namespace)::work"},
        {"main::{lambda(int)#1}::operator()(int) const", "main::{lambda#1}::operator()"},
        {"main()::{lambda()#1}::operator()() const", "main::{lambda#1}::operator()"},
        {"f(int) const::{lambda()#1}", "f::{lambda#1}"},
        {"bool operator<<A>(A const&, A const&)", "operator<<A>"},
        {"std::ostream& operator<<(std::ostream&, T)", "operator<<"},
        {"A::operator->() const", "A::operator->"},
        {"A::operator bool() const", "A::operator bool"},
        {"operator new(unsigned long)", "operator new"},
        {"my_operator(int)", "my_operator"},
        {"void run<void (*)(int), 3ul>(void (*)(int))", "run<void (...)(...), 3ul>"},
        {"big<A, Bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, Ccccccccccccccccccccccccccc>()", "big<...>"},
        {"<app::Pool as core::ops::Drop>::drop", "app::Pool::drop"},
        {"<std::sys::sync::mutex::futex::Mutex>::lock_contended",
         "std::sys::sync::mutex::futex::Mutex::lock_contended"},
        {"<alloc::boxed::Box<dyn core::ops::function::FnOnce<, Output = > + core::marker::Send> as "
         "core::ops::function::FnOnce<>>::call_once",
         "alloc::boxed::Box<dyn FnOnce<...> + Send>::call_once"},
        {"<&dyn core::ops::function::Fn<, Output = i32> + core::marker::Sync as "
         "core::ops::function::FnOnce<>>::call_once",
         "<&dyn Fn<...> + Sync as FnOnce<...>>::call_once"},
        {"std::panicking::catch_unwind::<i32, app::Job>",
         "std::panicking::catch_unwind::<i32, Job>"},
        {"app::main::{{closure}}", "app::main::{{closure}}"},
        {"f()::<lambda(int)>", "f::<lambda>"},
        {"empty<>()", "empty<>"},
        {"work(int) [clone .cold]", "work"},
        {"f(", "f"},
        {"f<", "f<>"},
        {"main.(*T).Run", "main.(*T).Run"},
        {"main.Map[...]", "main.Map[...]"},
        {"main.run.func1", "main.run.func1"},
        {"writer (4711): flush", "writer (4711): flush"},
        {"postgres: checkpointer (12): void run<A<B>>(int)",
         "postgres: checkpointer (12): run<A<...>>"},
        {"writer (4711): ", "writer (4711): "},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buf[FUNCTION_NAME_SIZE], shown[FUNCTION_NAME_SIZE + 1];
        trail_string name = function_name_short(text(cases[i][0]), buf);
        memcpy(shown, name.data, name.size);
        shown[name.size] = '\0';
        assert_string_equal(shown, cases[i][1]);
    }
}

TEST(a_name_is_cut_where_it_is_too_long)
{
    char name[2000], buf[FUNCTION_NAME_SIZE];
    memset(name, 'a', sizeof name);
    name[1999] = '(';
    assert_int_equal(function_name_short((trail_string){name, sizeof name}, buf).size,
                     FUNCTION_NAME_SIZE);
    memset(name, '<', sizeof name);
    assert_true(function_name_short((trail_string){name, sizeof name}, buf).size <=
                FUNCTION_NAME_SIZE);
}

TEST(functions_of_locks_have_names_that_say_so)
{
    static const char *const locks[] = {"fx_lock",     "fx_unlock",        "Cache::Lock",
                                        "mtx_trylock", "RwLock::write",    "lock(mutex*)",
                                        "LOCK_TABLE",  "cache_unlock_all", "PubLock::take",
                                        "release_lock"},
                             *const others[] = {"block",
                                                "clock",
                                                "unblock",
                                                "is_locked",
                                                "Clock::now",
                                                "look",
                                                "lockers",
                                                "",
                                                "liblock.so.1+0x12",
                                                "LockFreeQueue::pop",
                                                "lock_free_push",
                                                "is_lock_free",
                                                "Deadlock::wait",
                                                "LOCKED",
                                                "Q::pop(std::unique_lock<std::mutex>&)",
                                                "update_lock_table",
                                                "LockManager::compact"};
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++)
        assert_true(function_name_is_of_lock(text(locks[i])));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(function_name_is_of_lock(text(others[i])));
}

TEST(what_is_not_known_of_a_place_is_left_out)
{
    char buf[PLACE_TEXT_SIZE];
    trail_string f = text("work(int)"), file = text("/src/a.cpp"), none = {NULL, 0};
    assert_string_equal(place_of_frame(f, file, 7, PLACE_PARENTHESES, buf, sizeof buf),
                        "work (a.cpp:7)");
    assert_string_equal(place_of_frame(f, file, 7, PLACE_PLAIN, buf, sizeof buf), "work a.cpp:7");
    assert_string_equal(place_of_frame(f, file, 0, PLACE_PARENTHESES, buf, sizeof buf),
                        "work (a.cpp)");
    assert_string_equal(place_of_frame(f, none, 0, PLACE_PARENTHESES, buf, sizeof buf), "work");
    assert_string_equal(place_of_frame(f, none, 0, PLACE_PLAIN, buf, sizeof buf), "work");
}

/* MARK: Waits of languages' libraries */

struct stack {
    const char *frames[8][2]; /* innermost first: function and file */
};

static size_t depth_of(const struct stack *stack)
{
    size_t depth = 0;
    while (depth < 8 && stack->frames[depth][0])
        depth++;
    return depth;
}

static trail_string frame_of(const void *context, size_t frame, trail_string *file)
{
    const struct stack *stack = context;
    const char *path = stack->frames[frame][1];
    *file = text(path ? path : "");
    return text(stack->frames[frame][0]);
}

TEST(a_stack_shows_what_a_library_waits_for)
{
    static const struct {
        struct stack stack;
        int wait;
        const char *text; /* of the object "it" at the place "work" */
    } cases[] = {
        {{{{"syscall"},
           {"std::latch::wait() const", "/usr/include/c++/12/latch"},
           {"work", "a.cc"}}},
         WIRE_LOG_LATCH,
         "it"},
        {{{{"syscall"},
           {"std::sys::unix::locks::futex_mutex::Mutex::lock_contended"},
           {"app::work"}}},
         WIRE_LOG_MUTEX,
         "it"},
        {{{{"syscall"}, {"<std::sys::sync::rwlock::futex::RwLock>::write_contended"}}},
         WIRE_LOG_WRLOCK,
         "it"},
        /* The channel's own lock is a lock. */
        {{{{"syscall"},
           {"std::sys::sync::mutex::futex::Mutex::lock_contended"},
           {"std::sync::mpmc::list::Channel<T>::recv"}}},
         WIRE_LOG_MUTEX,
         "it"},
        {{{{"syscall"},
           {"std::thread::park"},
           {"std::sync::mpmc::list::Channel<T>::recv"},
           {"app::work", "main.rs"}}},
         WIRE_LOG_RECEIVE,
         "in work"},
        {{{{"syscall"}, {"std::thread::park"}, {"app::work", "main.rs"}}},
         WIRE_LOG_PARK,
         "in work"},
        /* What a function of the program waits for is not the function that called it. */
        {{{{"syscall"},
           {"std::thread::park"},
           {"app::work", "main.rs"},
           {"rayon_core::join::join"}}},
         WIRE_LOG_PARK,
         "in work"},
        {{{{"syscall"},
           {"parking_lot_core::thread_parker::imp::ThreadParker::park"},
           {"parking_lot::raw_mutex::RawMutex::lock_slow"},
           {"app::work"}}},
         WIRE_LOG_MUTEX,
         "in work"},
        {{{{"syscall"},
           {"parking_lot_core::thread_parker::imp::ThreadParker::park"},
           {"parking_lot::condvar::Condvar::wait_until_internal"},
           {"app::work"}}},
         WIRE_LOG_COND,
         "in work"},
        {{{{"syscall"},
           {"std::thread::park"},
           {"crossbeam_channel::flavors::array::Channel<T>::send"},
           {"app::work"}}},
         WIRE_LOG_SEND,
         "in work"},
        {{{{"syscall"},
           {"std::sys::sync::condvar::futex::Condvar::wait"},
           {"rayon_core::sleep::Sleep::sleep"},
           {"rayon_core::registry::WorkerThread::wait_until_cold"},
           {"rayon_core::registry::ThreadBuilder::run"}}},
         WIRE_LOG_WORK,
         "rayon"},
        {{{{"syscall"},
           {"std::sys::sync::condvar::futex::Condvar::wait_timeout"},
           {"tokio::runtime::blocking::pool::Inner::run"}}},
         WIRE_LOG_WORK,
         "tokio, blocking pool"},
        {{{{"syscall"}, {"QBasicMutex::lockInternal()"}, {"work"}}}, WIRE_LOG_MUTEX, "it (QMutex)"},
        {{{{"pthread_cond_wait"},
           {"QWaitCondition::wait(QMutex*, QDeadlineTimer)"},
           {"QThread::wait(QDeadlineTimer)"},
           {"work"}}},
         WIRE_LOG_JOIN,
         ""},
        {{{{"syscall"},
           {"g_cond_wait"},
           {"libglib-2.0.so.0.7400.6+0x228aa"},
           {"g_async_queue_pop"},
           {"work", "a.c"}}},
         WIRE_LOG_RECEIVE,
         "GAsyncQueue in work"},
        {{{{"syscall"},
           {"tbb::detail::r1::futex_wait(void*, int)"},
           {"tbb::detail::r1::rml::private_worker::run()"}}},
         WIRE_LOG_WORK,
         "TBB"},
        {{{{"syscall"},
           {"folly::detail::futexWaitImpl(void const*, unsigned int)"},
           {"folly::SharedMutexImpl<false>::lock_shared()"},
           {"work"}}},
         WIRE_LOG_RDLOCK,
         "it (folly::SharedMutex)"},
        {{{{"pthread_cond_timedwait"}, {"take_gil"}, {"PyEval_RestoreThread"}}},
         WIRE_LOG_INTERPRETER,
         "GIL of Python"},
        {{{{"pthread_cond_timedwait"}, {"take_gil"}, {"_PyEval_EvalFrameDefault"}}},
         WIRE_LOG_INTERPRETER,
         "GIL of Python"},
        {{{{"pthread_cond_timedwait"}, {"take_gil"}, {"run"}, {"main"}}}, WIRE_LOG_NONE, NULL},
        {{{{"pthread_cond_timedwait"}, {"take_gil"}, {"take_gil"}, {"run"}}}, WIRE_LOG_NONE, NULL},
        {{{{"pthread_cond_timedwait"}, {"take_gil", "vm.c"}, {"run", "vm.c"}}},
         WIRE_LOG_NONE,
         NULL},
        {{{{"syscall"}, {"scheduler_wait"}, {"start_thread"}}}, WIRE_LOG_NONE, NULL},
        {{{{"rb_native_cond_wait"},
           {"libruby-3.1.so.3.1.2+0x20f772"},
           {"rb_threadptr_execute_interrupts"},
           {"rb_vm_exec"}}},
         WIRE_LOG_INTERPRETER,
         "GVL of Ruby"},
        {{{{"pthread_cond_wait"},
           {"os::PlatformEvent::park()"},
           {"ObjectMonitor::EnterI(JavaThread*)"},
           {"ObjectMonitor::enter(JavaThread*)"}}},
         WIRE_LOG_MUTEX,
         "monitor of Java in work"},
        {{{{"pthread_cond_timedwait"},
           {"os::PlatformEvent::park(long)"},
           {"JavaThread::sleep(long)"},
           {"JVM_Sleep"}}},
         WIRE_LOG_SLEEP,
         ""},
        {{{{"pthread_cond_wait"}, {"st_masterlock_acquire", "st_posix.h"}}},
         WIRE_LOG_INTERPRETER,
         "master lock of OCaml"},
        {{{{"pthread_cond_wait"}, {"yieldCapability", "rts/Capability.c"}}}, WIRE_LOG_WORK, "GHC"},
        {{{{"syscall"}, {"ethr_event_twait"}, {"beam.smp+0x747ab"}, {"erts_schedule"}}},
         WIRE_LOG_WORK,
         "Erlang scheduler"},
        {{{{"syscall"}, {"work", "a.c"}, {"std::latch::wait() const"}}}, WIRE_LOG_NONE, NULL},
        {{{{"syscall"}, {"sync.runtime_Semacquire", "/go/src/sema.go"}}}, WIRE_LOG_NONE, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct stack *stack = &cases[i].stack;
        const struct runtime_wait *found = runtime_wait_find(frame_of, stack, depth_of(stack));
        char shown[64];
        if ((found ? (int)found->wait : WIRE_LOG_NONE) != cases[i].wait)
            fail_msg("the wait in %s is %d", stack->frames[1][0], found ? (int)found->wait : 0);
        if (!found)
            continue;
        runtime_object_text(found, found->object >= 0 ? "it" : NULL, "work", shown, sizeof shown);
        assert_string_equal(shown, cases[i].text);
    }
}

TEST(a_condition_can_be_known_by_its_name)
{
    const struct runtime_wait *found = runtime_wait_of_object("_PyRuntime+0x188");
    assert_non_null(found);
    assert_int_equal(found->wait, WIRE_LOG_INTERPRETER);
    assert_null(runtime_wait_of_object("ready"));
    assert_null(runtime_wait_of_object("my_PyRuntime+0x188"));
}

TEST(what_started_the_outermost_function_is_left_out)
{
    static const struct stack rust = {{{"syscall"},
                                       {"app::work", "main.rs"},
                                       {"std::rt::lang_start", "/rustc/5/library/std/src/rt.rs"},
                                       {"main"},
                                       {"__libc_start_main"}}};
    static const struct stack none = {{{"syscall"}, {"start_thread"}}};
    assert_int_equal(runtime_frames_outside(frame_of, &rust, depth_of(&rust)), 2);
    assert_int_equal(runtime_frames_inside(frame_of, &rust, depth_of(&rust)), 1);
    assert_int_equal(runtime_frames_outside(frame_of, &none, depth_of(&none)), 2);
    assert_int_equal(runtime_frames_inside(frame_of, &none, depth_of(&none)), 2);
}

/* Only the kernel's own waits, whose call was not observed, have no class. */
TEST(each_kind_of_wait_has_a_class)
{
    static const char *const kinds[] = {
#define WAIT_KIND(name, word, ...) word,
#include "wire/wait_kinds.def"
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((wait_class_of(text(kinds[i])) == WAIT_CLASS_UNKNOWN) !=
            (strcmp(kinds[i], "kernel") == 0))
            fail_msg("%s has no class", kinds[i]);
    assert_int_equal(wait_class_of(text("mutex")), WAIT_CLASS_LOCK);
    assert_int_equal(wait_class_of(text("chan receive")), WAIT_CLASS_COND);
    assert_int_equal(wait_class_of(text("network")), WAIT_CLASS_IO);
    assert_int_equal(wait_class_of(text("sleep")), WAIT_CLASS_SLEEP);
    assert_int_equal(wait_class_of(text("work")), WAIT_CLASS_IDLE);
    assert_int_equal(wait_class_of(text("GC mark assist wait for work")), WAIT_CLASS_RUNTIME);
    assert_int_equal(wait_class_of(text("")), WAIT_CLASS_UNKNOWN);
}
