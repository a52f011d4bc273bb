/* Finds programs that did not load the recorder: see missed.h. */
#include "collect/missed.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "shm/shm.h"

/* Returns the number of bytes read, and terminates them with NUL; 0: nothing can be read. */
static size_t read_entry(pid_t pid, const char *name, char *text, size_t size)
{
    char path[96];
    size_t got = 0;
    ssize_t n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && got < size - 1 && (n = read(fd, text + got, size - 1 - got)) > 0)
        got += (size_t)n;
    if (fd >= 0)
        close(fd);
    text[got] = '\0';
    return got;
}

/* MARK: Why */

/* If the environment is longer, it is not known whether a variable is missing. */
#define ENVIRONMENT ((size_t)256 * 1024)

static bool lacks_variables(pid_t pid)
{
    char *text = malloc(ENVIRONMENT);
    if (!text)
        return false;
    size_t size = read_entry(pid, "environ", text, ENVIRONMENT);
    bool preload = false, shm = false;
    for (size_t at = 0; at < size; at += strlen(text + at) + 1) {
        preload |= strncmp(text + at, "LD_PRELOAD=", 11) == 0 && strstr(text + at, "libtrail-");
        shm |= strncmp(text + at, SHM_VARIABLE "=", sizeof SHM_VARIABLE) == 0;
    }
    free(text);
    return size < ENVIRONMENT - 1 && !(preload && shm);
}

static bool is_privileged(pid_t pid)
{
    char text[4096];
    Elf64_auxv_t entry;
    size_t size = read_entry(pid, "auxv", text, sizeof text);
    for (size_t at = 0; at + sizeof entry <= size; at += sizeof entry) {
        memcpy(&entry, text + at, sizeof entry);
        if (entry.a_type == AT_SECURE)
            return entry.a_un.a_val != 0;
    }
    return false;
}

/* Whether the program's file requests a loader; *musl: musl's. True if the file cannot be read. */
static bool has_loader(pid_t pid, bool *musl)
{
    char text[8192];
    Elf64_Ehdr header;
    Elf64_Phdr part;
    size_t size = read_entry(pid, "exe", text, sizeof text);
    *musl = false;
    if (size < sizeof header)
        return true;
    memcpy(&header, text, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
        return true;
    for (size_t i = 0; i < header.e_phnum; i++) {
        if (header.e_phoff > size || size - header.e_phoff < (i + 1) * sizeof part)
            return true;
        memcpy(&part, text + header.e_phoff + i * sizeof part, sizeof part);
        if (part.p_type != PT_INTERP)
            continue;
        *musl = part.p_offset < size && strstr(text + part.p_offset, "ld-musl") != NULL;
        return true;
    }
    return false;
}

static bool is_elsewhere(pid_t pid)
{
    static const char *const kinds[] = {"mnt", "pid", "net"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char path[64], own[64] = "", other[64] = "";
        (void)snprintf(path, sizeof path, "/proc/self/ns/%s", kinds[i]);
        if (readlink(path, own, sizeof own - 1) <= 0)
            continue;
        (void)snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, kinds[i]);
        if (readlink(path, other, sizeof other - 1) > 0 && strcmp(own, other) != 0)
            return true;
    }
    return false;
}

enum wire_missed missed_why(pid_t pid)
{
    bool musl;
    if (!has_loader(pid, &musl))
        return WIRE_MISSED_STATIC;
    if (musl)
        return WIRE_MISSED_MUSL;
    if (is_privileged(pid))
        return WIRE_MISSED_PRIVILEGED;
    if (lacks_variables(pid))
        return WIRE_MISSED_ENVIRONMENT;
    return is_elsewhere(pid) ? WIRE_MISSED_NAMESPACE : WIRE_MISSED_UNKNOWN;
}

/* MARK: Which */

/* After this time a program has loaded its libraries, or executed another program. */
#define LOADED_NS INT64_C(200000000)

/* How many generations of processes are searched. */
#define MAX_DEPTH 8

static bool is_loaded(pid_t pid)
{
    char text[1024];
    const char *at;
    unsigned long long start;
    long hz = sysconf(_SC_CLK_TCK);
    if (read_entry(pid, "stat", text, sizeof text) == 0 || !(at = strrchr(text, ')')) || hz <= 0 ||
        sscanf(at + 1,
               "%*s %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &start) != 1)
        return false;
    return (int64_t)clock_ns(CLOCK_BOOTTIME) - (int64_t)(start * (1000000000 / (unsigned long)hz)) >
           LOADED_NS;
}

static bool read_program(pid_t pid, char path[PATH_MAX])
{
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size > 0 ? size : 0] = '\0';
    return size > 0;
}

static void look_below(pid_t pid, const struct missed_search *search, int depth)
{
    char name[64], text[4096], own[PATH_MAX], other[PATH_MAX], *end;
    (void)snprintf(name, sizeof name, "task/%d/children", (int)pid);
    if (read_entry(pid, name, text, sizeof text) == 0 || !read_program(pid, own))
        return;
    for (const char *at = text; *at; at = end) {
        pid_t child = (pid_t)strtol(at, &end, 10);
        if (end == at)
            break;
        if (child <= 0 || search->is_recorded(search->context, child) ||
            !read_program(child, other))
            continue;
        if (strcmp(own, other) != 0 && is_loaded(child)) {
            search->found(search->context, child, path_name(other));
        } else if (depth > 0) {
            look_below(child, search, depth - 1);
        }
    }
}

void missed_children(pid_t pid, const struct missed_search *search)
{
    look_below(pid, search, MAX_DEPTH);
}
