/* Makes a running process load the recorder, join a recording and leave it: see attach.h. */
#include "attach/attach.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attach/found.h"
#include "attach/safe.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/present_memory.h"
#include "base/small_file.h"
#include "stuck/stuck.h"

/* How long to look for a thread that can make a call. */
#define PATIENCE_NS INT64_C(10000000000)

/* How long to wait while a process loads its libraries. */
#define LOADING_NS INT64_C(1000000000)

#define WORD_SIZE 256

/* MARK: Refusals */

/* Copies the value of a field of /proc/PID/status; false if it is missing. */
static bool read_status(pid_t pid, const char *word, char *value, size_t size)
{
    char text[8192];
    const char *at;
    if (!small_file_text(text, sizeof text, "/proc/%d/status", (int)pid) ||
        !(at = strstr(text, word)))
        return false;
    at += strlen(word);
    at += strspn(at, "\t ");
    (void)snprintf(value, size, "%.*s", (int)strcspn(at, "\n"), at);
    return true;
}

static bool refuse(trail_error *err, const char *format, pid_t pid)
{
    error_set(err, TRAIL_USAGE, format, (int)pid);
    return false;
}

static bool has_filter(pid_t pid)
{
    SMALL_FILE_NUMBERS(task, "/proc/%d/task", (int)pid)
        if (held_is_filtered((pid_t)task.at))
            return true;
    return false;
}

static bool look_at_status(pid_t pid, trail_error *err)
{
    char value[256];
    if (read_status(pid, "\nState:", value, sizeof value) && *value == 'Z' &&
        read_status(pid, "\nThreads:", value, sizeof value) && atoi(value) > 1)
        return refuse(
            err,
            "the main thread of process %d has ended, and with it the kernel's list of what "
            "is mapped; start it with 'trail record -- PROGRAM'",
            pid);
    if (!read_status(pid, "\nState:", value, sizeof value) || *value == 'Z' || *value == 'X') {
        error_set(err, TRAIL_IO, "there is no process %d", (int)pid);
        return false;
    }
    if (*value == 'T' || *value == 't')
        return refuse(err, "process %d is stopped; continue it ('kill -CONT') or end its debugger",
                      pid);
    if (read_status(pid, "\nTracerPid:", value, sizeof value) && atoi(value) > 0)
        return held_refuse(pid, err);
    if (has_filter(pid))
        return refuse(err,
                      "process %d has a seccomp filter, which could kill it for loading a library; "
                      "start it with 'trail record -- PROGRAM'",
                      pid);
    if (read_status(pid, "\nx86_Thread_features:", value, sizeof value) && strstr(value, "shstk"))
        return refuse(
            err,
            "process %d has a shadow stack, which prevents calls from outside; start it with "
            "GLIBC_TUNABLES=glibc.cpu.x86_shstk=off",
            pid);
    if (read_status(pid, "\nNSpid:", value, sizeof value) && strpbrk(value, "\t "))
        return refuse(
            err, "process %d is in its own PID namespace (a container): run trail inside it", pid);
    return true;
}

/* Processor emulators: the kernel shows the state of the emulator, not of its program. */
static const struct {
    const char *file; /* a folder of their code, or the beginning of their file's name */
    const char *name;
} simulators[] = {
    /* clang-format off */
    {"/libexec/valgrind/", "valgrind"}, {"/lib/valgrind/", "valgrind"}, {"/lib64/valgrind/", "valgrind"},
    {"/libdynamorio.so", "DynamoRIO"},
    {"/pinbin", "Intel's Pin"},
    {"/FEXInterpreter", "FEX"},
    {"/box64", "box64"},
    {"/qemu-x86_64", "qemu"}, {"/qemu-i386", "qemu"}, {"/qemu-aarch64", "qemu"}, {"/qemu-arm", "qemu"},
    {"/qemu-riscv", "qemu"}, {"/qemu-ppc", "qemu"}, {"/qemu-s390x", "qemu"}, {"/qemu-mips", "qemu"},
    /* clang-format on */
};

static bool is_of_simulator(const char *path, const char *file)
{
    size_t size = strlen(file);
    const char *name = strrchr(path, '/');
    return file[size - 1] == '/' ? strstr(path, file) != NULL : strncmp(name, file, size) == 0;
}

static bool look_at_mapped_files(const struct attach *a, trail_error *err)
{
    struct small_lines lines = small_lines_open("/proc/%d/maps", (int)a->pid);
    const char *name = NULL;
    if (!lines.file && (errno == EACCES || errno == EPERM))
        return held_refuse(a->pid, err);
    while (!name && small_lines_next(&lines)) {
        const char *code = strstr(lines.text, " r-xp "), *its = code ? strchr(code, '/') : NULL;
        for (size_t i = 0; its && i < sizeof simulators / sizeof *simulators && !name; i++)
            if (is_of_simulator(its, simulators[i].file))
                name = simulators[i].name;
    }
    small_lines_close(&lines);
    if (!name)
        return true;
    error_set(err, TRAIL_USAGE,
              "process %d runs under %s, where no call can be made in it: run it without",
              (int)a->pid, name);
    return false;
}

/* Decided by its mapped files: a program started through musl's loader has no list of libraries. */
static bool uses_musl(pid_t pid)
{
    SMALL_FILE_LINES(lines, "/proc/%d/maps", (int)pid) {
        const char *code = strstr(lines.text, " r-xp "), *its = code ? strchr(code, '/') : NULL;
        if (its && held_is_musl(its))
            return true;
    }
    return false;
}

static bool look_at_libraries(struct attach *a, trail_error *err)
{
    bool is_static = false;
    /* A program may still be loading its libraries. */
    for (int64_t limit = now_ns() + LOADING_NS; now_ns() <= limit && !is_static;) {
        if (image_find(&a->libc, a->pid, "libc.so.6"))
            return true;
        if (errno == EACCES || errno == EPERM)
            return held_refuse(a->pid, err);
        if (uses_musl(a->pid))
            return refuse(err,
                          "process %d uses musl, not glibc: only programs with glibc are recorded; "
                          "examine it with 'trail stuck', or record the scheduler: 'perf sched "
                          "record', then 'trail import'",
                          a->pid);
        is_static = image_is_static(a->pid);
        if (!is_static)
            (void)nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    if (is_static)
        return refuse(
            err,
            "process %d has no shared C library (it is linked statically): examine it with 'trail "
            "stuck', or record the scheduler: 'perf sched record', then 'trail import'",
            a->pid);
    return refuse(err,
                  "process %d: its loader's list of libraries has no glibc that matches its "
                  "mappings; if the process has just been started, try again",
                  a->pid);
}

/* Checks that the process finds the same file at the library's path. */
static bool look_at_path(const struct attach *a, trail_error *err)
{
    char path[64 + PATH_MAX];
    struct stat ours, theirs;
    (void)snprintf(path, sizeof path, "/proc/%d/root%s", (int)a->pid, a->path);
    if (stat(a->path, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
        ours.st_ino == theirs.st_ino)
        return true;
    if (errno == EACCES || errno == EPERM)
        return held_refuse(a->pid, err);
    error_set(err, TRAIL_USAGE,
              "process %d has another file system (a container) without %s: install and run trail "
              "there",
              (int)a->pid, a->path);
    return false;
}

/* MARK: What is needed of the C library */

static bool find_loader(struct attach *a, const struct image *image, int file, trail_error *err)
{
    return image_code(image, file, image_symbol(image, "dlopen"), &a->load, err) &&
           image_code(image, file, image_symbol(image, "dlerror"), &a->load_error, err);
}

static bool find_code(struct attach *a, trail_error *err)
{
    /* mov $15, %rax; syscall: where signal handlers return to in the C library. */
    static const uint8_t end[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    /* mov %rax, (%rbx); pop %rbx; ret */
    static const uint8_t store[] = {0x48, 0x89, 0x03, 0x5b, 0xc3};
    struct image libdl;
    int file = image_file(&a->libc, err);
    bool good =
        file >= 0 &&
        image_code(&a->libc, file, image_bytes(&a->libc, end, sizeof end), &a->code.sigreturn,
                   err) &&
        image_code(&a->libc, file, image_bytes(&a->libc, store, sizeof store), &a->code.store, err);
    /* Before glibc 2.34 the loader's functions are in a library of their own. */
    if (good && !find_loader(a, &a->libc, file, err))
        good = false;
    if (file >= 0)
        close(file);
    if (good && !a->load.address && image_find(&libdl, a->pid, "libdl.so.2") &&
        (file = image_file(&libdl, err)) >= 0) {
        good = find_loader(a, &libdl, file, err);
        close(file);
    }
    if (good && a->code.sigreturn.address && a->load.address)
        return true;
    if (good)
        error_set(err, TRAIL_USAGE, "trail does not know the C library of process %d (%s)",
                  (int)a->pid, a->libc.path);
    return false;
}

bool attach_look(struct attach *a, pid_t pid, const char *path, trail_error *err)
{
    *a = (struct attach){.pid = pid, .path = path};
    if (pid == getpid()) {
        error_set(err, TRAIL_USAGE, "process %d is this command", (int)pid);
        return false;
    }
    errno = 0;
    return look_at_status(pid, err) && look_at_mapped_files(a, err) && look_at_libraries(a, err) &&
           look_at_path(a, err) && find_code(a, err);
}

/* MARK: Calls */

/* Receives the threads' waits before a call. */
struct listener {
    attach_found_fn *found;
    void *context;
};

static void note_pause(struct attach *a, int64_t ns)
{
    if (ns > a->paused_ns)
        a->paused_ns = ns;
}

/* Tries a call once. */
static enum remote_outcome try_call(struct attach *a, struct remote_call *call,
                                    const struct listener *listener, trail_error *err)
{
    struct stuck stuck = {.limit_ns = HELD_LIMIT_NS};
    const struct stuck_thread *thread;
    enum remote_outcome outcome = REMOTE_ELSEWHERE;
    if (!stuck_add(&stuck, a->pid, err)) {
        outcome = REMOTE_FAILED;
    } else if ((thread = safe_thread(&stuck.processes[0])) != NULL) {
        struct remote_place place = {thread->held->call, thread->held->sp};
        int64_t begin = now_ns();
        if (listener)
            found_threads(&stuck.processes[0], listener->found, listener->context);
        outcome = remote_do(a->pid, thread->held->tid, &place, &a->code, call, err);
        note_pause(a, now_ns() - begin);
        note_pause(a, stuck.processes[0].held.stopped_ns);
    }
    stuck_free(&stuck);
    return outcome;
}

/* Calls a function as soon as a thread can do so. */
static bool call_there(struct attach *a, struct remote_call *call, const struct listener *listener,
                       trail_error *err)
{
    int64_t limit = now_ns() + PATIENCE_NS;
    while (now_ns() < limit) {
        if (has_filter(a->pid))
            return refuse(err,
                          "process %d has installed a seccomp filter, which could kill it for what "
                          "the recorder's library does: the library is not called in it any more",
                          a->pid);
        enum remote_outcome outcome =
            safe_is_likely(a->pid) ? try_call(a, call, listener, err) : REMOTE_ELSEWHERE;
        if (outcome != REMOTE_ELSEWHERE)
            return outcome == REMOTE_DONE;
        if (kill(a->pid, 0) != 0 && errno == ESRCH) {
            error_set(err, TRAIL_IO, "process %d has ended", (int)a->pid);
            return false;
        }
        (void)nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    error_set(err, TRAIL_IO,
              "no thread of process %d was at a safe place in a system call within 10 s: try again",
              (int)a->pid);
    return false;
}

/* MARK: Loading */

struct load_data {
    uint64_t result;
    char path[PATH_MAX];
};

/* Sets *err to the loader's error message. */
static bool explain_load(struct attach *a, trail_error *err)
{
    struct load_data data = {0};
    struct remote_call call = {
        .function = a->load_error, .data = &data, .size = sizeof data.result};
    char text[256] = "";
    if (a->load_error.address && call_there(a, &call, NULL, err) && call.result)
        (void)memory_of_other(a->pid, call.result, text, sizeof text - 1);
    error_set(err, TRAIL_IO, "process %d cannot load the recorder: %s", (int)a->pid,
              *text ? text : "its loader has refused");
    return false;
}

/* Finds the functions once: the file may be replaced while the process is recorded. */
static bool find_functions(struct attach *a, trail_error *err)
{
    const struct {
        const char *name;
        struct image_code *code;
    } functions[] = {{ATTACH_JOIN, &a->join}, {ATTACH_RENEW, &a->renew}, {ATTACH_LEAVE, &a->leave}};
    int file = image_file(&a->library, err);
    bool good = file >= 0;
    for (size_t i = 0; good && i < sizeof functions / sizeof *functions; i++) {
        uint64_t address = image_symbol(&a->library, functions[i].name);
        if (!address)
            error_set(err, TRAIL_IO,
                      "%s in process %d belongs to another version of trail: it lacks %s", a->path,
                      (int)a->pid, functions[i].name);
        good = address && image_code(&a->library, file, address, functions[i].code, err);
    }
    if (file >= 0)
        close(file);
    return good;
}

static bool load(struct attach *a, trail_error *err)
{
    struct load_data data = {0};
    struct remote_call call = {
        .function = a->load,
        .data = &data,
        .size = sizeof data.result + strlen(a->path) + 1,
        .arguments = {offsetof(struct load_data, path), RTLD_NOW | RTLD_NODELETE},
        .is_offset = {true}};
    if (strlen(a->path) >= sizeof data.path)
        return refuse(err, "process %d: the path of libtrail-preload.so is too long", a->pid);
    memcpy(data.path, a->path, strlen(a->path) + 1);
    if (!call_there(a, &call, NULL, err))
        return false;
    if (image_find(&a->library, a->pid, a->path))
        return find_functions(a, err);
    return explain_load(a, err);
}

/* MARK: Joining and leaving */

struct answer_data {
    uint64_t result;
    struct attach_answer answer;
    char word[WORD_SIZE];
};

/*
 * Whether the process has executed another program since it joined. False if it cannot be read: a
 * process that has dropped its privileges is still the same.
 */
static bool is_replaced(const struct attach *a)
{
    struct image now;
    if (image_find(&now, a->pid, a->path))
        return now.bias != a->library.bias;
    return errno == 0;
}

/* Calls one of the library's functions (shm/attach.h). */
static bool call_library(struct attach *a, const struct image_code *function, const char *word,
                         const struct listener *listener, struct attach_answer *answer,
                         trail_error *err)
{
    struct answer_data data = {0};
    struct remote_call call = {
        .function = *function,
        .data = &data,
        .size = sizeof data,
        .arguments = {offsetof(struct answer_data, answer), offsetof(struct answer_data, word)},
        .is_offset = {true, true}};
    (void)snprintf(data.word, sizeof data.word, "%s", word);
    if (!call_there(a, &call, listener, err))
        return false;
    *answer = data.answer;
    a->imports = answer->imports;
    return true;
}

static bool has_limited_memory(pid_t pid)
{
    static const char word[] = "Max address space";
    SMALL_FILE_LINES(lines, "/proc/%d/limits", (int)pid) {
        if (strncmp(lines.text, word, sizeof word - 1) != 0)
            continue;
        const char *soft = lines.text + sizeof word - 1;
        return strncmp(soft + strspn(soft, " "), "unlimited", strlen("unlimited")) != 0;
    }
    return false;
}

static bool understand(const struct attach *a, uint32_t result, trail_error *err)
{
    switch (result) {
    case ATTACH_GOOD:
        return true;
    case ATTACH_PRELOADED:
        return refuse(err, "process %d was started by 'trail record' and has its recorder already",
                      a->pid);
    case ATTACH_RECORDED:
        return refuse(err, "process %d is being recorded by another 'trail record'", a->pid);
    case ATTACH_NO_AREA:
        if (has_limited_memory(a->pid))
            return refuse(err,
                          "process %d could not map the recording's memory: its address space is "
                          "limited (ulimit -v)",
                          a->pid);
        return refuse(err,
                      "process %d could not open the recording's memory: run trail as its user, in "
                      "its network namespace",
                      a->pid);
    case ATTACH_NO_FUNCTION:
        return refuse(err, "process %d: the C library's functions were not found", a->pid);
    default:
        return refuse(err, "process %d did not answer", a->pid);
    }
}

/* Returns a hash of the process's mapped code; 0: the process has ended. */
static uint64_t hash_of_code(pid_t pid)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    bool found = false;
    SMALL_FILE_LINES(lines, "/proc/%d/maps", (int)pid) {
        const char *permissions = strchr(lines.text, ' ');
        if (!permissions || strncmp(permissions, " r-xp", 5) != 0)
            continue;
        found = true;
        for (const char *c = lines.text; *c; c++)
            hash = (hash ^ (uint8_t)*c) * UINT64_C(1099511628211);
    }
    return found ? hash : 0;
}

bool attach_has_changed(struct attach *a)
{
    uint64_t seen = a->code_seen, now = hash_of_code(a->pid);
    if (now == 0)
        return false;
    a->code_seen = now;
    return a->joined && seen != now;
}

bool attach_join(struct attach *a, const char *word, attach_found_fn *found, void *context,
                 trail_error *err)
{
    const struct listener listener = {found, context};
    struct attach_answer answer;
    if (!load(a, err))
        return false;
    /* Before the call: what the process loads while it joins may not be recorded yet. */
    (void)attach_has_changed(a);
    if (!call_library(a, &a->join, word, &listener, &answer, err))
        return false;
    a->joined = understand(a, answer.result, err);
    return a->joined;
}

bool attach_renew(struct attach *a, trail_error *err)
{
    struct attach_answer answer;
    return is_replaced(a) || call_library(a, &a->renew, "", NULL, &answer, err);
}

bool attach_leave(struct attach *a, trail_error *err)
{
    struct attach_answer answer;
    if (!a->joined || is_replaced(a))
        return true;
    a->joined = !call_library(a, &a->leave, "", NULL, &answer, err);
    return !a->joined;
}
