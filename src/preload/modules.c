/*
 * Writes which code is mapped where: lines in the area, as in the trace's module map, at the
 * program's start and when it unloads a library. The collector finds loaded libraries in the
 * kernel's list; dlopen is not wrapped, because it searches the folders of its caller, which would
 * then be the wrapper. Unloaded libraries stay listed, marked as such.
 */
#include <string.h>

#include "host/modules.h"
#include "host/unwind.h"
#include "preload/call.h"

struct lines {
    char *at;
    size_t room;
};

static void add_line(const char *line, void *context)
{
    struct lines *lines = context;
    size_t size = strlen(line);
    if (size + 1 > lines->room)
        return;
    memcpy(lines->at, line, size);
    lines->at[size] = '\n';
    lines->at += size + 1;
    lines->room -= size + 1;
}

/* MARK: What is unloaded */

#define LOADED   "trail.module "
#define UNLOADED "trail.unloaded "

/* How many bytes to keep of unloaded libraries' lines: the newest ones. */
#define UNLOADED_SIZE (64u << 10)

/* The lines from before a change. Unused pages of the array take no memory. */
static char former[SHM_MODULES_SIZE];
static uint32_t former_size;

static bool starts_with(const char *line, size_t size, const char *word)
{
    return size > strlen(word) && memcmp(line, word, strlen(word)) == 0;
}

/* Whether a line is among those that end at `end`, by what follows its first word. */
static bool is_listed(const char *rest, size_t size, const char *end)
{
    const char *at = preload.area->modules;
    while ((at = memmem(at, (size_t)(end - at), rest, size)) != NULL && at + size < end) {
        if (at[-1] == ' ' && at[size] == '\n')
            return true;
        at++;
    }
    return false;
}

/*
 * Keeps libraries that are no longer mapped in the list under another first word, because names for
 * their PCs may be looked up later.
 */
static void add_unloaded(struct lines *lines)
{
    const char *limit = lines->at + UNLOADED_SIZE, *end = former + former_size;
    size_t size, word;
    for (const char *line = former; line < end; line += size + 1) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        if (!newline)
            break;
        size = (size_t)(newline - line);
        word = starts_with(line, size, LOADED)     ? strlen(LOADED)
               : starts_with(line, size, UNLOADED) ? strlen(UNLOADED)
                                                   : 0;
        if (!word || is_listed(line + word, size - word, lines->at) ||
            sizeof UNLOADED + size > lines->room || lines->at + sizeof UNLOADED + size > limit)
            continue;
        memcpy(lines->at, UNLOADED, strlen(UNLOADED));
        memcpy(lines->at + strlen(UNLOADED), line + word, size - word + 1);
        lines->at += strlen(UNLOADED) + size - word + 1;
        lines->room -= strlen(UNLOADED) + size - word + 1;
    }
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * How deeply the thread is inside the lock. A signal handler of that thread neither waits for the
 * lock nor changes the lines.
 */
static PER_THREAD int within;

/* Saves the lines before a change or a fork. */
static void keep_former(const struct shm_area *area)
{
    former_size = area->header.modules_used;
    memcpy(former, area->modules, former_size);
}

/*
 * A forked child uses its parent's lines instead of listing its libraries, because the loader's
 * lock may stay held in the child. For the same reason no thread changes the lines during a fork.
 */
void modules_before_fork(void)
{
    if (within++ > 0)
        return;
    REAL(pthread_mutex_lock)(&lock);
    if (preload.area)
        keep_former(preload.area);
}

void modules_after_fork(void)
{
    if (within == 1)
        REAL(pthread_mutex_unlock)(&lock);
    within--;
}

void modules_inherit(struct shm_area *area)
{
    memcpy(area->modules, former, former_size);
    __atomic_store_n(&area->header.modules_used, former_size, __ATOMIC_RELEASE);
    __atomic_add_fetch(&area->header.modules_version, 2, __ATOMIC_ACQ_REL);
}

void modules_changed(void)
{
    struct shm_header *header = &preload.area->header;
    struct lines lines = {preload.area->modules, SHM_MODULES_SIZE};
    int old_errno = errno;
    pid_t pid = getpid();
    if (within > 0)
        return;
    within = 1;
    REAL(pthread_mutex_lock)(&lock);
    keep_former(preload.area);
    /* Odd while the lines change, so that the collector reads them again later. */
    __atomic_add_fetch(&header->modules_version, 1, __ATOMIC_ACQ_REL);
    modules_each(add_line, &lines);
    add_unloaded(&lines);
    /* Otherwise this is a child forked by a signal handler in between: the lines are the
     * parent's. */
    if (getpid() == pid) {
        __atomic_store_n(&header->modules_used, (uint32_t)(SHM_MODULES_SIZE - lines.room),
                         __ATOMIC_RELEASE);
        __atomic_add_fetch(&header->modules_version, 1, __ATOMIC_ACQ_REL);
    }
    REAL(pthread_mutex_unlock)(&lock);
    within = 0;
    errno = old_errno;
}

EXPORT int dlclose(void *library)
{
    /* Libraries loaded since the last change are not in the list yet. */
    if (preload.area)
        modules_changed();
    int status = REAL(dlclose)(library);
    if (preload.area) {
        unwind_forget();
        modules_changed();
    }
    return status;
}
