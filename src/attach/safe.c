/* Chooses a thread in which a function can be called safely: see safe.h. */
#include "attach/safe.h"

#include <string.h>
#include <sys/syscall.h>

#include "base/small_file.h"

/* Minimum room on the stack, for a signal frame with all vector registers and for the loader. */
#define ROOM (UINT64_C(64) << 10)

/* Functions that hold locks taken by the loader, or use data changed by it. */
static bool is_unsafe_function(const char *name)
{
    static const char *const words[] = {"alloc", "free", "memalign", "arena",       "tcache",
                                        "fork",  "dl_",  "dlopen",   "dlclose",     "dlsym",
                                        "sbrk",  "mmap", "madvise",  "tls_get_addr"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(name, words[i]))
            return true;
    }
    return false;
}

static bool is_unsafe_frame(const struct stuck_frame *frame)
{
    return strncmp(frame->module, "ld-linux", 8) == 0 || strncmp(frame->module, "ld.so", 5) == 0 ||
           is_unsafe_function(frame->function);
}

static bool has_room(const struct stuck_process *process, const struct stuck_thread *thread)
{
    const struct mapping *stack = held_mapping_of(&process->held, thread->held->sp);
    return stack &&
           (thread->held->sp - stack->start >= ROOM || strcmp(stack->path, "[stack]") == 0);
}

static bool has_time_limit(const struct stuck_thread *thread)
{
    return thread->held->call == SYS_futex && thread->held->arguments[3] != 0;
}

/*
 * Higher ranks disturb the program less if this process ends in the middle: waits for a condition
 * or a thread resume by themselves, the kernel restarts reads and the like, others fail with EINTR.
 * 0: unusable.
 */
static int rank_of_wait(const struct stuck_thread *thread)
{
    switch (thread->kind) {
    case WIRE_WAIT_CONDITION:
    case WIRE_WAIT_JOIN:
        return 4;
    case WIRE_WAIT_SEMAPHORE:
        return has_time_limit(thread) ? 1 : 3;
    case WIRE_WAIT_ACCEPT:
    case WIRE_WAIT_READ:
    case WIRE_WAIT_CHILD:
        return 3;
    case WIRE_WAIT_POLL:
        return 2;
    case WIRE_WAIT_SLEEP:
    case WIRE_WAIT_SIGNAL:
    case WIRE_WAIT_MUTEX:
    case WIRE_WAIT_RWLOCK:
    case WIRE_WAIT_BARRIER:
        return 1;
    default:
        /* A restarted call was a sleep, a poll or a futex. */
        return thread->held->call == SYS_restart_syscall ? 1 : 0;
    }
}

static int rank_of(const struct stuck_process *process, const struct stuck_thread *thread)
{
    int rank = rank_of_wait(thread);
    if (thread->state != STUCK_WAITS || !thread->held->in_call || !thread->held->is_copied ||
        thread->held->state != 'S' || !has_room(process, thread) || thread->frame_count == 0)
        return 0;
    for (size_t i = 0; i < thread->frame_count; i++) {
        if (is_unsafe_frame(&thread->frames[i]))
            return 0;
    }
    /* The rest of a truncated stack is unknown. */
    if (thread->is_cut || held_is_ended_by_stop(process->held.pid, thread->held))
        rank = rank > 1 ? 1 : rank;
    return rank;
}

const struct stuck_thread *safe_thread(const struct stuck_process *process)
{
    const struct stuck_thread *best = NULL;
    int most = 0;
    for (size_t i = 0; i < process->held.count; i++) {
        int rank = rank_of(process, &process->threads[i]);
        if (rank > most) {
            most = rank;
            best = &process->threads[i];
        }
    }
    return best;
}

bool safe_is_likely(pid_t pid)
{
    char text[256];
    SMALL_FILE_NUMBERS(task, "/proc/%d/task", (int)pid)
        if (small_file_text(text, sizeof text, "/proc/%d/task/%d/syscall", (int)pid, task.at) &&
            *text >= '0' && *text <= '9')
            return true;
    return false;
}
