/*
 * Joins the recording: the constructor maps the area that the environment names. The file
 * descriptor is not needed afterwards, so the program may close all descriptors.
 *
 * A forked child inherits the mapping but must not write into its parent's area.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/call.h"
#include "preload/descriptors.h"
#include "preload/exec.h"
#include "preload/file_locks.h"
#include "shm/handover.h"

/* How long to wait for the next area if this one is taken and a collector runs: at most 0.5 s. */
#define MAX_TRIES 2500

/* glibc's default stack size if RLIMIT_STACK is unlimited. */
#define STACK_SIZE (UINT64_C(2) << 20)

/* Opens the area that `word`, the value of SHM_VARIABLE, names. */
static int open_area(const char *word)
{
    char path[64], asked[SHM_WORD_SIZE + 1];
    int pid, owned;
    char more;
    if (strncmp(word, "path:", 5) == 0)
        return open(word + 5, O_RDWR | O_CLOEXEC);
    if (sscanf(word, "pid:%d:%d:%32[0-9a-f]%c", &pid, &owned, asked, &more) != 3)
        return -1;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, owned);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    return fd >= 0 ? fd : handover_ask(pid, owned, asked);
}

/* The number of the fork that made this process, until its area has it; 0: none. */
static uint32_t forked;

/* Whether the fork was counted in the area. A process made by clone(2) has no area of its own, only
 * its parent's mapping, and is not counted. */
static bool counted_fork;

/* Set while a forked child starts, when locks of the C library may be held forever. */
static bool in_fork;

/* The address of an area that was left, where another may be mapped; NULL: none. */
static void *left;

/* Limits the areas left before every announced thread had read its slot. */
#define KEPT 8
static struct shm_area *kept[KEPT];

/* Replaces an area with zeroed memory. */
static void leave_place(struct shm_area *area)
{
    if (mmap(area, sizeof *area, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == area)
        left = area;
}

static struct shm_area *map_area(int fd)
{
    struct stat status;
    struct shm_area *area;
    if (fstat(fd, &status) != 0 || (size_t)status.st_size < sizeof *area)
        return NULL;
    area = mmap(left, sizeof *area, PROT_READ | PROT_WRITE, MAP_SHARED | (left ? MAP_FIXED : 0), fd,
                0);
    return area == MAP_FAILED ? NULL : area;
}

enum claim { CLAIMED, NOT_OURS, TAKEN };

/* Claims the area if it is meant for this process and not yet taken. */
static enum claim claim(struct shm_header *header)
{
    uint32_t mine = (uint32_t)getpid(), nobody = 0;
    if (header->magic != SHM_MAGIC || header->version != SHM_VERSION ||
        header->size_check != sizeof(struct shm_area) / 4096)
        return NOT_OURS;
    if (__atomic_load_n(&header->root_pid, __ATOMIC_ACQUIRE) != mine && !header->children)
        return NOT_OURS;
    return __atomic_compare_exchange_n(&header->claimed, &nobody, mine, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED)
               ? CLAIMED
               : TAKEN;
}

/*
 * Maps and claims the area that the variable names; NULL: none for this process. If another
 * process, or an earlier program of this one, has taken it, the collector soon provides the next.
 */
static struct shm_area *claim_area(const char *word)
{
    const struct timespec moment = {0, 200000};
    for (int try = 0; try < MAX_TRIES; try++) {
        int fd = open_area(word);
        struct shm_area *area = fd >= 0 ? map_area(fd) : NULL;
        enum claim result = area ? claim(&area->header) : NOT_OURS;
        if (fd >= 0)
            close(fd);
        if (result == CLAIMED)
            return area;
        if (result == TAKEN && try == MAX_TRIES - 1)
            (void)__atomic_add_fetch(&area->header.turned_away, 1, __ATOMIC_RELAXED);
        if (area && area == left)
            leave_place(area);
        else if (area)
            munmap(area, sizeof *area);
        if (result == NOT_OURS)
            break;
        (void)REAL(nanosleep)(&moment, NULL);
    }
    return NULL;
}

/* MARK: Whether the kernel reports context switches */

static bool try_rseq(void)
{
    const struct timespec moment = {0, 1};
    if (!has_rseq())
        return false;
    switches_begin();
    /* Not nanosleep, which would replace the state of an interrupted nanosleep of this thread. */
    (void)REAL(ppoll)(NULL, 0, &moment, NULL);
    return switches_happened();
}

/* MARK: The process's life */

/* Not in `preload`, which the kernel clears in a child. */
static struct shm_area *mapped;
static uint32_t recordings;

/* Computes glibc's default stack size of threads, which is also the first thread's maximum. */
static uint64_t usual_stack_size(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return STACK_SIZE;
    return limit.rlim_cur;
}

int64_t preload_heap_early;

/* A forked child begins with its parent's live heap. */
static void sum_heap(const struct shm_area *area)
{
    uint32_t threads = __atomic_load_n(&area->header.threads_used, __ATOMIC_ACQUIRE);
    int64_t sum = __atomic_load_n(&area->header.heap_rest, __ATOMIC_RELAXED) +
                  __atomic_load_n(&area->header.heap_ended, __ATOMIC_RELAXED);
    for (uint32_t i = 1; i < threads && i < SHM_THREADS; i++) {
        if (__atomic_load_n(&area->threads[i].state, __ATOMIC_ACQUIRE) != SHM_FREE)
            sum += __atomic_load_n(&area->threads[i].heap, __ATOMIC_RELAXED);
    }
    preload_heap_early = sum;
}

/* Numbers the fork, which identifies this thread as the creator of the child's first thread. */
static void record_fork(void)
{
    struct shm_record record = {.kind = SHM_FORKED};
    struct unwind_start caller = CALLER();
    self.fork = 0;
    if (!board_of_several || !is_recorded(SHM_GROUP_THREADS) || !record_begin())
        return;
    self.fork = __atomic_add_fetch(&board->forks, 1, __ATOMIC_RELAXED);
    record.object = self.fork;
    record.stack = stack_of(&caller);
    record.time = clock_now();
    record_put(&record);
    record_end();
}

static void before_fork(void)
{
    struct shm_area *area = preload.area;
    modules_before_fork();
    descriptors_inherited();
    record_fork();
    counted_fork = area && area->header.children;
    if (!counted_fork)
        return;
    /* Keeps the recorder alive if the parent ends before its child has decided to be recorded. */
    (void)__atomic_add_fetch(&area->header.forking, 1, __ATOMIC_RELAXED);
    if (area->header.heap)
        sum_heap(area);
}

static void after_fork(void)
{
    struct shm_area *parents = mapped;
    bool children = parents && parents->header.children;
    uint32_t number = self.fork;
    modules_after_fork();
    /* Not unmapped: a signal handler may have forked in the middle of a call that uses the area. */
    preload.area = NULL;
    mapped = NULL;
    self = (struct self){.over = !children};
    file_locks_forget();
    if (!children)
        return;
    if (is_confined()) {
        (void)__atomic_add_fetch(&parents->header.confined, 1, __ATOMIC_RELAXED);
    } else {
        forked = number;
        in_fork = true;
        (void)preload_attach(secure_getenv(SHM_VARIABLE));
        in_fork = false;
    }
    /* Pairs with the load in area_is_forking. */
    if (counted_fork)
        (void)__atomic_sub_fetch(&parents->header.forking, 1, __ATOMIC_RELEASE);
}

static uint64_t pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

bool preload_attach(const char *word)
{
    struct shm_area *area = word ? claim_area(word) : NULL;
    if (!area)
        return false;
    preload.has_counter = area->header.has_counter;
    area->header.fork = forked;
    forked = 0;
    __atomic_store_n(&area->header.pid_namespace, pid_namespace(), __ATOMIC_RELAXED);
    __atomic_store_n(&area->header.claimed_at, clock_now(), __ATOMIC_RELEASE);
    preload.half_step_ticks = area->header.step_ticks / 2;
    preload.hold_ticks = area->header.hold_ticks;
    preload.min_wait_ticks = area->header.min_wait_ticks;
    preload.all_holds = area->header.all_holds;
    preload.has_rseq = try_rseq();
    preload.stack_size = usual_stack_size();
    left = NULL;
    board_join(word, &area->header);
    preload.area = area;
    preload.recording = ++recordings;
    __atomic_store_n(&area->header.mapped_at, (uint64_t)(uintptr_t)area, __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(&area->header.heap_rest,
                             __atomic_exchange_n(&preload_heap_early, 0, __ATOMIC_RELAXED),
                             __ATOMIC_RELAXED);
    mapped = area;
    samples_prepare();
    signals_read_group();
    (void)madvise(&preload, sizeof preload, MADV_WIPEONFORK);
    if (in_fork)
        modules_inherit(area);
    else
        modules_changed();
    if (area->header.announced)
        threads_begin_announced();
    else
        (void)self_attach();
    return true;
}

/* MARK: Recording a process that runs */

/* Whether an announced thread has not begun yet and will still read its slot. */
static bool is_thread_coming(const struct shm_area *area)
{
    uint32_t threads = __atomic_load_n(&area->header.threads_used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 1; i < threads && i < SHM_THREADS; i++) {
        if (__atomic_load_n(&area->threads[i].state, __ATOMIC_ACQUIRE) == SHM_LIVE &&
            __atomic_load_n(&area->threads[i].tid, __ATOMIC_ACQUIRE) == 0)
            return true;
    }
    return false;
}

static void keep(struct shm_area *area)
{
    for (size_t i = 0; i < KEPT; i++) {
        if (!kept[i]) {
            kept[i] = area;
            return;
        }
    }
}

/* Frees the memory of areas that no thread will read again. */
static void drop_kept(void)
{
    for (size_t i = 0; i < KEPT; i++) {
        if (!kept[i] || is_thread_coming(kept[i]))
            continue;
        leave_place(kept[i]);
        kept[i] = NULL;
    }
}

/*
 * Threads may be in calls that began in this recording and will write their ends. The addresses
 * stay mapped, as zeroed memory, and the next area is mapped there.
 */
void preload_detach(void)
{
    const struct timespec moment = {0, 1000000};
    struct shm_area *area = preload.area;
    if (!area || !preload.recording)
        return;
    preload.recording = 0;
    for (int try = 0; try < 20 && is_thread_coming(area); try++)
        (void)REAL(ppoll)(NULL, 0, &moment, NULL);
    mapped = NULL;
    if (is_thread_coming(area))
        keep(area);
    else
        leave_place(area);
    drop_kept();
}

/* MARK: The beginning */

void preload_survive_forks(void)
{
    static bool done;
    if (!done)
        (void)pthread_atfork(before_fork, modules_after_fork, after_fork);
    done = true;
}

__attribute__((constructor)) static void begin(void)
{
    int old_errno = errno;
    real_find();
    exec_prepare();
    /* A library loaded into a running process waits for trail_preload_join. */
    if (!real_is_late() && preload_attach(secure_getenv(SHM_VARIABLE)))
        preload_survive_forks();
    errno = old_errno;
}
