/* Processes that others wait for: stuck_follow (stuck.h). */
#include <stdlib.h>
#include <sys/syscall.h>

#include "base/small_file.h"
#include "collect/process.h"
#include "stuck/stuck.h"

/* Maximum number of processes to add. */
#define MOST_RELATED 16

/* A process that may not be examined, or has ended, is not added. */
static void add(struct stuck *stuck, pid_t pid)
{
    trail_error err;
    if (stuck_process_of(stuck, pid) || !stuck_add(stuck, pid, &err))
        return;
    stuck->processes[stuck->count - 1].is_related = true;
}

/* MARK: Locks in shared memory */

/* Whether the process has mapped the same file or memory. */
static bool maps_it(pid_t pid, const struct mapping *wanted)
{
    struct mapping m;
    SMALL_FILE_LINES(lines, "/proc/%d/maps", pid)
        if (mapping_read(lines.text, &m) && mapping_is_same_file(&m, wanted))
            return true;
    return false;
}

/* Adds the process of the thread that holds an object in shared memory. */
static void follow_holder(struct stuck *stuck, const struct stuck_process *process,
                          const struct stuck_thread *thread)
{
    const struct mapping *mapping = held_mapping_of(&process->held, thread->held->arguments[0]);
    pid_t tid = thread->holder.tid, pid;
    if (tid <= 0 || process->held.is_nested || !mapping || !mapping->is_shared)
        return;
    pid = ends_process(tid);
    if (pid > 0 && maps_it(pid, mapping))
        add(stuck, pid);
}

/* MARK: Other ends */

/* Whether a call is one whose wait may be for another process. */
static bool may_wait(long call)
{
    static const long calls[] = {SYS_read,   SYS_readv,  SYS_recvfrom, SYS_recvmsg, SYS_write,
                                 SYS_writev, SYS_sendto, SYS_sendmsg,  SYS_wait4,   SYS_futex,
                                 SYS_flock,  SYS_fcntl,  SYS_splice};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (call == calls[i])
            return true;
    }
    return false;
}

/* Whether all threads of a process are in such calls: otherwise it is not part of a cycle, and is
 * not stopped. */
static bool waits_for_others(pid_t pid)
{
    char text[256], *end;
    size_t threads = 0;
    SMALL_FILE_NUMBERS(task, "/proc/%d/task", pid) {
        threads++;
        if (!small_file_text(text, sizeof text, "/proc/%d/task/%d/syscall", pid, task.at) ||
            !may_wait(strtol(text, &end, 10)) || end == text)
            return false;
    }
    return threads > 0;
}

static void follow_peers(struct stuck *stuck, const struct peers *peers)
{
    for (size_t i = 0; i < peers->count; i++) {
        if (!stuck_process_of(stuck, peers->pids[i]) && waits_for_others(peers->pids[i]))
            add(stuck, peers->pids[i]);
    }
}

void stuck_follow(struct stuck *stuck)
{
    size_t most = stuck->count + MOST_RELATED;
    /* The list grows, and may move. */
    for (size_t i = 0; i < stuck->count; i++) {
        for (size_t j = 0; j < stuck->processes[i].held.count && stuck->count < most; j++) {
            struct stuck_thread thread = stuck->processes[i].threads[j];
            follow_holder(stuck, &stuck->processes[i], &thread);
            if (thread.peers.is_all)
                follow_peers(stuck, &thread.peers);
        }
    }
}
