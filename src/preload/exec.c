/*
 * Keeps the recorder in the LD_PRELOAD of executed programs. If it was replaced, as by `env
 * LD_PRELOAD=libjemalloc.so ./server`, the recorder is put back in front. An environment without
 * LD_PRELOAD, or without the recorder's variable, is left alone: it was cleared on purpose. After a
 * seccomp filter (is_confined) the variable is removed: the filter applies to the next program,
 * too. This also runs between vfork and exec, so it uses only async-signal-safe functions and no
 * malloc.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "preload/call.h"
#include "preload/exec.h"
#include "preload/file_locks.h"
#include "shm/shm.h"

static const char PRELOAD[] = "LD_PRELOAD=";

/* Prefixes of the recorder's libraries, and of sanitizers', which must come first. */
static const char *const OURS[] = {"libtrail-"}, *const FIRST[] = {"libasan", "libtsan",
                                                                   "libclang_rt."};

/*
 * The recorder's libraries in this process's LD_PRELOAD, as a list:
 * "/usr/lib/trail/libtrail-preload.so".
 */
static char ours[2 * 4096];

/* Returns the end of a list's first entry; entries end at colons and spaces. */
static const char *entry_end(const char *list)
{
    return list + strcspn(list, ": ");
}

static const char *next_entry(const char *end)
{
    return *end ? end + 1 : end;
}

static bool is_named(const char *entry, const char *end, const char *const *names, size_t count)
{
    const char *slash = memrchr(entry, '/', (size_t)(end - entry));
    const char *name = slash ? slash + 1 : entry;
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(names[i]);
        if ((size_t)(end - name) > size && memcmp(name, names[i], size) == 0)
            return true;
    }
    return false;
}

#define IS_NAMED(entry, end, names) is_named(entry, end, names, sizeof(names) / sizeof *(names))

static bool has_ours(const char *list)
{
    for (const char *end; *list; list = next_entry(end)) {
        end = entry_end(list);
        if (IS_NAMED(list, end, OURS))
            return true;
    }
    return false;
}

void exec_prepare(void)
{
    const char *list = secure_getenv("LD_PRELOAD");
    size_t used = 0;
    for (const char *end; list && *list; list = next_entry(end)) {
        end = entry_end(list);
        size_t size = (size_t)(end - list);
        if (!IS_NAMED(list, end, OURS) || used + size + 2 > sizeof ours)
            continue;
        if (used > 0)
            ours[used++] = ':';
        memcpy(ours + used, list, size);
        used += size;
    }
    ours[used] = '\0';
}

/* MARK: Environments */

/* Whether the entry names the area to join. */
static bool is_request(const char *entry)
{
    return strncmp(entry, SHM_VARIABLE "=", sizeof SHM_VARIABLE) == 0;
}

/* Returns the index of an LD_PRELOAD that lacks the recorder; -1: none. */
static ptrdiff_t find_replaced(char *const *environment)
{
    ptrdiff_t found = -1;
    bool is_asked = false;
    for (ptrdiff_t i = 0; is_address(environment) && is_address(environment[i]); i++) {
        if (is_request(environment[i]))
            is_asked = true;
        else if (found < 0 && strncmp(environment[i], PRELOAD, sizeof PRELOAD - 1) == 0)
            found = i;
    }
    if (!is_asked || found < 0)
        return -1;
    const char *list = environment[found] + sizeof PRELOAD - 1;
    return *list && !has_ours(list) ? found : -1;
}

/* Appends `size` bytes; returns the end. */
static char *append(char *to, const char *text, size_t size)
{
    memcpy(to, text, size);
    return to + size;
}

/* Writes the list with the recorder after the libraries that must come first. */
static void write_list(char *to, const char *list)
{
    const char *rest = list, *end = entry_end(list);
    while (*rest && IS_NAMED(rest, end, FIRST)) {
        rest = next_entry(end);
        end = entry_end(rest);
    }
    to = append(to, PRELOAD, sizeof PRELOAD - 1);
    to = append(to, list, (size_t)(rest - list));
    if (rest > list && !*rest)
        *to++ = ':';
    to = append(to, ours, strlen(ours));
    if (*rest)
        *to++ = ':';
    to = append(to, rest, strlen(rest));
    *to = '\0';
}

static size_t count_of(char *const *environment)
{
    size_t count = 0;
    while (environment[count])
        count++;
    return count;
}

/* Copies the environment without what makes a program join the recording; returns the number of
 * entries. */
static size_t leave_out(char *const *environment, char **copy)
{
    size_t count = 0;
    for (; is_address(environment) && *environment; environment++) {
        if (is_request(*environment))
            continue;
        if (copy)
            copy[count] = *environment;
        count++;
    }
    if (copy)
        copy[count] = NULL;
    return count;
}

size_t exec_join_size(char *const *environment)
{
    if (is_confined())
        return (leave_out(environment, NULL) + 1) * sizeof(char *);
    ptrdiff_t replaced = *ours ? find_replaced(environment) : -1;
    if (replaced < 0)
        return 0;
    return (count_of(environment) + 1) * sizeof(char *) + strlen(environment[replaced]) +
           strlen(ours) + 3;
}

struct exec_joined exec_join(char *const *environment, void *room, size_t size)
{
    struct exec_joined joined = {.environment = environment};
    if (size == 0)
        return joined;
    if (size > EXEC_ON_STACK) {
        room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED)
            return joined;
        joined.mapped = room;
        joined.size = size;
    }
    if (is_confined()) {
        (void)leave_out(environment, room);
        joined.environment = room;
        return joined;
    }
    size_t count = count_of(environment);
    char **copy = room, *text = (char *)(copy + count + 1);
    ptrdiff_t replaced = find_replaced(environment);
    memcpy(copy, environment, (count + 1) * sizeof *copy);
    write_list(text, environment[replaced] + sizeof PRELOAD - 1);
    copy[replaced] = text;
    joined.environment = copy;
    return joined;
}

void exec_unjoin(struct exec_joined *joined)
{
    int old_errno = errno;
    if (joined->mapped)
        (void)munmap(joined->mapped, joined->size);
    errno = old_errno;
}

/* MARK: What was executed */

/* Adds to the number of programs that cannot be recorded because of a seccomp filter. */
static void count_confined(int change)
{
    if (is_confined() && preload.area)
        (void)__atomic_add_fetch(&preload.area->header.confined, (uint32_t)change,
                                 __ATOMIC_RELAXED);
}

void exec_note(uint32_t pid, const char *file)
{
    struct shm_area *area = preload.area;
    if (!area || !area->header.children)
        return;
    if (is_confined()) {
        count_confined(pid & SHM_NOT_EXECUTED ? -1 : 1);
        return;
    }
    uint32_t number = __atomic_fetch_add(&area->header.executed_count, 1, __ATOMIC_RELAXED);
    struct shm_executed *to = &area->header.executed[number % SHM_EXECUTED];
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    size_t size = strlen(name), most = sizeof to->name - 1;
    __atomic_store_n(&to->pid, 0, __ATOMIC_RELAXED);
    memcpy(to->name, name, size < most ? size : most);
    to->name[size < most ? size : most] = '\0';
    __atomic_store_n(&to->pid, pid, __ATOMIC_RELEASE);
}

/* Whether this is a child between vfork and exec, which has the parent's memory but its own PID. */
static bool is_in_child(void)
{
    const struct shm_area *area = preload.area;
    if (is_confined())
        return self.vforks > 0;
    return area && area->header.claimed != (uint32_t)getpid();
}

/* The PID of a child, for exec_note, which needs none behind a filter. */
static uint32_t own_pid(void)
{
    return is_confined() ? 0 : (uint32_t)getpid();
}

/* This program is about to be replaced. */
static void note_replaced(const struct unwind_start *caller)
{
    count_confined(1);
    file_locks_execute(caller);
}

static void note_kept(void)
{
    count_confined(-1);
    file_locks_kept();
}

/* MARK: exec */

/* Makes `call` with the recorder in the environment `given`. Returns -1 if it fails. */
#define EXECUTE(given, file, call)                                                                 \
    struct unwind_start caller = CALLER();                                                         \
    EXEC_JOINED(given);                                                                            \
    bool in_child = is_in_child();                                                                 \
    if (in_child)                                                                                  \
        exec_note(own_pid(), file);                                                                \
    else                                                                                           \
        note_replaced(&caller);                                                                    \
    int result = (call);                                                                           \
    if (in_child)                                                                                  \
        exec_note(own_pid() | SHM_NOT_EXECUTED, file);                                             \
    else                                                                                           \
        note_kept();                                                                               \
    return result

EXPORT int execve(const char *path, char *const *arguments, char *const *environment)
{
    EXECUTE(environment, path, REAL(execve)(path, arguments, joined.environment));
}

EXPORT int execv(const char *path, char *const *arguments)
{
    EXECUTE(environ, path, REAL(execve)(path, arguments, joined.environment));
}

EXPORT int execvpe(const char *file, char *const *arguments, char *const *environment)
{
    EXECUTE(environment, file, REAL(execvpe)(file, arguments, joined.environment));
}

EXPORT int execvp(const char *file, char *const *arguments)
{
    EXECUTE(environ, file, REAL(execvpe)(file, arguments, joined.environment));
}

EXPORT int fexecve(int fd, char *const *arguments, char *const *environment)
{
    EXECUTE(environment, "(a descriptor)", REAL(fexecve)(fd, arguments, joined.environment));
}

EXPORT int execveat(int folder, const char *path, char *const *arguments, char *const *environment,
                    int flags)
{
    EXECUTE(environment, path, REAL(execveat)(folder, path, arguments, joined.environment, flags));
}

/* Returns the number of arguments, with `first` and without the final NULL. */
static size_t count_arguments(const char *first, va_list rest)
{
    size_t count = 0;
    for (const char *argument = first; argument; argument = va_arg(rest, const char *))
        count++;
    return count;
}

static void take_arguments(char **to, size_t count, const char *first, va_list rest)
{
    for (size_t i = 0; i <= count; i++)
        to[i] = i == 0 ? (char *)(uintptr_t)first : va_arg(rest, char *);
}

/* Declares `arguments`, made from `first` and the variable ones, and `rest`, which follows their
 * final NULL. */
#define LIST_OF(first)                                                                             \
    va_list rest;                                                                                  \
    va_start(rest, first);                                                                         \
    size_t count = count_arguments(first, rest);                                                   \
    va_end(rest);                                                                                  \
    char **arguments = __builtin_alloca((count + 1) * sizeof *arguments);                          \
    va_start(rest, first);                                                                         \
    take_arguments(arguments, count, first, rest)

EXPORT int execl(const char *path, const char *first, ...)
{
    LIST_OF(first);
    va_end(rest);
    return execv(path, arguments);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    LIST_OF(first);
    va_end(rest);
    return execvp(file, arguments);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    LIST_OF(first);
    char *const *environment = va_arg(rest, char *const *);
    va_end(rest);
    return execve(path, arguments, environment);
}
