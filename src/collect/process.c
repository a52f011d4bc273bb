/* See process.h. Everything is read from /proc (proc(5)). */
#include "collect/process.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/small_file.h"
#include "shm/mapping.h"

/* MARK: What a process has mapped */

/* Whether a line of /proc/PID/maps maps the file. */
static bool maps_file(const char *line, struct area_inode inode)
{
    struct mapping m;
    return mapping_read(line, &m) && m.inode == inode.inode &&
           (inode.device == 0 || makedev(m.major, m.minor) == inode.device);
}

static enum process_claim look_at_maps(pid_t pid, struct area_inode inode)
{
    enum process_claim found = PROCESS_GONE;
    struct small_lines lines = small_lines_open("/proc/%d/maps", (int)pid);
    if (lines.file)
        errno = 0;
    /* A zombie has no lines. */
    while (found != PROCESS_CONFIRMED && small_lines_next(&lines))
        found = maps_file(lines.text, inode) ? PROCESS_CONFIRMED : PROCESS_NOT_OURS;
    if (found == PROCESS_GONE && (errno == EACCES || errno == EPERM))
        found = PROCESS_UNKNOWN;
    small_lines_close(&lines);
    return found;
}

/* MARK: Numbers */

/* Returns the ID of a process or thread in its own namespace, from its folder; *count: the number
 * of namespaces in which it has an ID. */
static uint32_t innermost_number(const char *path, unsigned *count)
{
    char *at, *end;
    uint32_t number = 0;
    *count = 0;
    SMALL_FILE_LINES(lines, "%s/status", path) {
        if (strncmp(lines.text, "NSpid:", 6) != 0)
            continue;
        for (at = lines.text + 6; *count < UINT32_MAX; at = end) {
            unsigned long next = strtoul(at, &end, 10);
            if (end == at)
                break;
            number = (uint32_t)next;
            ++*count;
        }
        break;
    }
    return number;
}

uint32_t process_own_pid(const struct process *process)
{
    char path[64];
    unsigned count;
    if (!process->nested)
        return (uint32_t)process->pid;
    (void)snprintf(path, sizeof path, "/proc/%d", (int)process->pid);
    return innermost_number(path, &count);
}

/* Reads a status file, whose lines come in this order. */
static struct process look_at(pid_t pid)
{
    struct process process = {.pid = pid};
    SMALL_FILE_LINES(lines, "/proc/%d/status", (int)pid) {
        unsigned outer, inner;
        process.zombie |= strncmp(lines.text, "State:\tZ", 8) == 0;
        (void)sscanf(lines.text, "PPid: %d", &process.parent);
        if (strncmp(lines.text, "NSpid:", 6) == 0) {
            process.nested = sscanf(lines.text + 6, "%u %u", &outer, &inner) == 2;
            break;
        }
    }
    return process;
}

bool process_calls_itself(pid_t pid, pid_t claimed)
{
    char path[64];
    unsigned count;
    (void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return innermost_number(path, &count) == (uint32_t)claimed && count > 0;
}

/* 0: not known. */
static pid_t parent_of(pid_t pid)
{
    int parent;
    SMALL_FILE_LINES(lines, "/proc/%d/status", (int)pid)
        if (sscanf(lines.text, "PPid: %d", &parent) == 1)
            return (pid_t)parent;
    return 0;
}

#define COMMAND_LINE 512

/* Reads the beginning of the command line, its arguments ended by zeros; without the zeros at its
 * end. Returns its length. */
static size_t read_command_line(pid_t pid, char line[COMMAND_LINE])
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(line, 1, COMMAND_LINE - 1, file) : 0;
    if (file)
        (void)fclose(file);
    while (length > 0 && (line[length - 1] == '\0' || line[length - 1] == ' '))
        length--;
    line[length] = '\0';
    return length;
}

bool process_name(pid_t pid, struct process_name *name)
{
    char line[COMMAND_LINE], *first = line;
    size_t length = read_command_line(pid, line);
    /* A server's title may contain a slash too, after the first word. */
    const char *slash = memrchr(line, '/', strcspn(line, " "));
    if (strcspn(line, " ") == 0)
        return false;
    if (slash)
        first = line + (slash + 1 - line);
    (void)snprintf(name->label, sizeof name->label, "%.*s (%d)", (int)sizeof name->label - 16,
                   first, (int)pid);
    for (size_t i = 0; i < length; i++)
        line[i] = line[i] == '\0' ? ' ' : line[i];
    (void)snprintf(name->title, sizeof name->title, "%.*s", (int)length, line);
    return true;
}

/* The limit on ancestors: parents may change while they are read. */
#define MAX_ANCESTORS 64

bool process_descends(pid_t pid, const struct process_family *family)
{
    for (int i = 0; i < MAX_ANCESTORS && pid > 1; i++) {
        pid = parent_of(pid);
        if (pid > 1 && family->has(family->context, pid))
            return true;
    }
    return false;
}

/* Calls `found` for the numbers in a folder of /proc until it returns true. Returns that number, or
 * 0. */
static uint32_t find_entry(const char *folder, bool (*found)(const char *path, void *context),
                           void *context)
{
    char path[128];
    SMALL_FILE_NUMBERS(entry, "%s", folder) {
        (void)snprintf(path, sizeof path, "%s/%d", folder, entry.at);
        if (found(path, context))
            return (uint32_t)entry.at;
    }
    return 0;
}

/* Searches processes in other namespaces, which have claimed under their PID there. */
struct claimant {
    uint32_t claimed;
    uint64_t namespace, ours; /* PID namespaces; 0: not known */
    struct area_inode inode;
    const struct process_family *family;
    unsigned found; /* descendants of the family */
    pid_t last;     /* the last one found */
};

/* Returns the inode of a process's PID namespace; 0: not known. */
static uint64_t namespace_of(const char *folder)
{
    char path[160];
    struct stat status;
    (void)snprintf(path, sizeof path, "%s/ns/pid", folder);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

/* Whether the claim may come from this process's namespace. */
static bool is_its_namespace(const struct claimant *claimant, const char *path)
{
    uint64_t namespace = namespace_of(path);
    if (namespace == 0)
        return true;
    return claimant->namespace ? namespace == claimant->namespace : namespace != claimant->ours;
}

static bool is_claimant(const char *path, void *context)
{
    struct claimant *claimant = context;
    uint64_t pid = strtoul(path + strlen("/proc/"), NULL, 10);
    unsigned count;
    if (!is_its_namespace(claimant, path))
        return false;
    if (innermost_number(path, &count) != claimant->claimed || count < 2)
        return false;
    if (look_at_maps((pid_t)pid, claimant->inode) == PROCESS_CONFIRMED)
        return true;
    if (process_descends((pid_t)pid, claimant->family)) {
        claimant->found++;
        claimant->last = (pid_t)pid;
    }
    return false;
}

enum process_claim process_look_at(pid_t claimed, struct area_inode inode, struct process *process)
{
    enum process_claim claim = look_at_maps(claimed, inode);
    *process = (struct process){0};
    if (claim == PROCESS_CONFIRMED || claim == PROCESS_GONE)
        *process = look_at(claimed);
    return claim;
}

/* In our namespace another process may have this PID, even one that may not be read. */
bool process_find(pid_t claimed, uint64_t namespace, struct area_inode inode,
                  const struct process_family *family, struct process *process, pid_t *descendant)
{
    struct claimant claimant = {.claimed = (uint32_t)claimed,
                                .namespace = namespace,
                                .ours = namespace_of("/proc/self"),
                                .inode = inode,
                                .family = family};
    pid_t nested = 0;
    if (namespace == 0 || namespace != claimant.ours)
        nested = (pid_t)find_entry("/proc", is_claimant, &claimant);
    *process = nested ? look_at(nested) : (struct process){0};
    *descendant = claimant.found == 1 ? claimant.last : 0;
    return nested;
}

/* MARK: Threads */

bool process_has_thread(const struct process *process, uint32_t tid)
{
    char path[64];
    if (process->pid == 0 || tid == 0)
        return false;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%" PRIu32, (int)process->pid, tid);
    return access(path, F_OK) == 0;
}

static bool has_number(const char *path, void *context)
{
    unsigned count;
    return innermost_number(path, &count) == *(const uint32_t *)context;
}

uint32_t process_thread(const struct process *process, uint32_t tid)
{
    char path[64];
    if (!process->nested)
        return process_has_thread(process, tid) ? tid : 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)process->pid);
    return find_entry(path, has_number, &tid);
}

/* MARK: Other facts */

long process_status_number(pid_t pid, const char *word, bool *several)
{
    char text[4096];
    const char *at;
    long first, second;
    if (!small_file_text(text, sizeof text, "/proc/%d/status", pid) || !(at = strstr(text, word)))
        return -1;
    int n = sscanf(at + strlen(word), "%ld%*[\t]%ld", &first, &second);
    if (several)
        *several = n == 2;
    return n >= 1 ? first : -1;
}

/* Returns a set of signals of the process, by its title in /proc/PID/status; 0: not known. */
static uint64_t signals_of(pid_t pid, const char *title)
{
    char text[4096];
    const char *at;
    if (!small_file_text(text, sizeof text, "/proc/%d/status", pid) || !(at = strstr(text, title)))
        return 0;
    return strtoull(at + strlen(title), NULL, 16);
}

bool process_withstands(pid_t pid, int number)
{
    uint64_t kept = signals_of(pid, "\nSigCgt:") | signals_of(pid, "\nSigIgn:");
    return kept >> (number - 1) & 1;
}

bool process_catches_alarm(pid_t pid)
{
    static const int signals[] = {SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGCHLD, SIGUSR1, SIGUSR2};
    uint64_t mask = ~UINT64_C(0) << (SIGRTMIN - 1); /* including the signals of timer_create */
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        mask |= UINT64_C(1) << (signals[i] - 1);
    return signals_of(pid, "\nSigCgt:") & mask;
}
