/*
 * Libraries that a program has loaded while it ran, from the kernel's list of its mappings. The program's own list
 * (preload/modules.c) has what was there when it started.
 *
 * A mapping tells where bytes of a file lie; what is to be taken off an address is in the file's program headers.
 * The file may be any: it is only read if it is a regular one, and every number in it is checked.
 */
#include "collect/maps.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HEADERS 64

struct mapping {
    uint64_t start, end, offset;
    char path[512];
};

/* An executable part of a file; false: the line is none. */
static bool read_line(const char *line, struct mapping *m)
{
    char permissions[5];
    int path = 0;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &m->start, &m->end,
               permissions, &m->offset, &path) != 4 ||
        path == 0 || permissions[2] != 'x' || line[path] != '/')
        return false;
    (void)snprintf(m->path, sizeof m->path, "%s", line + path);
    m->path[strcspn(m->path, "\n")] = '\0';
    return true;
}

static int open_regular(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;

    if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

static size_t read_headers(int fd, Elf64_Phdr *headers)
{
    Elf64_Ehdr elf;
    size_t size;

    if (pread(fd, &elf, sizeof elf, 0) != (ssize_t)sizeof elf ||
        memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
        elf.e_phentsize != sizeof headers[0] || elf.e_phnum > MAX_HEADERS)
        return 0;
    size = elf.e_phnum * sizeof headers[0];
    return pread(fd, headers, size, (off_t)elf.e_phoff) == (ssize_t)size ? elf.e_phnum : 0;
}

/* What an address of the mapping has more than the file's own; false: it is no code of an ELF file. */
static bool find_bias(const struct mapping *m, uint64_t *bias)
{
    Elf64_Phdr headers[MAX_HEADERS];
    int fd = open_regular(m->path);
    size_t count = fd >= 0 ? read_headers(fd, headers) : 0;
    bool found = false;

    for (size_t i = 0; i < count && !found; i++) {
        const Elf64_Phdr *h = &headers[i];
        if (h->p_type != PT_LOAD || !(h->p_flags & PF_X) || m->offset > h->p_offset ||
            h->p_offset - m->offset >= 4096)
            continue;
        *bias = m->start + (h->p_offset - m->offset) - h->p_vaddr;
        found = true;
    }
    if (fd >= 0)
        close(fd);
    return found;
}

void maps_each(int pid, void (*each)(const trail_module *map, void *context), void *context)
{
    char path[64], line[1024];
    struct mapping m;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/maps", pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        trail_module map = {0};
        if (!read_line(line, &m) || !find_bias(&m, &map.bias))
            continue;
        map.start = m.start;
        map.end = m.end;
        map.path = (trail_string){m.path, strlen(m.path)};
        each(&map, context);
    }
    if (file)
        (void)fclose(file);
}
