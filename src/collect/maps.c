/*
 * Reads the libraries that a program has loaded while it ran, and its shared memory, from the
 * kernel's list of its mappings. The program's own list (preload/modules.c) has those that were
 * loaded at its start.
 *
 * A mapping is the address of a part of a file; the bias of its addresses is computed from the
 * file's program headers.
 */
#include "collect/maps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/small_file.h"
#include "base/text.h"
#include "collect/elf_file.h"

struct mapping {
    uint64_t start, end, offset;
    bool code;
    char path[512];
};

/* Reads the mapping of a part of a file; false: the line is not one. */
static bool read_line(const char *line, const char *root, struct mapping *m)
{
    char permissions[5];
    int path = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &m->start, &m->end,
               permissions, &m->offset, &path) != 4 ||
        path == 0 || line[path] != '/')
        return false;
    m->code = permissions[2] == 'x';
    (void)snprintf(m->path, sizeof m->path, "%s%s", root, line + path);
    return true;
}

/* Computes the bias: a mapped address minus the file's own. False: not code of an ELF file. */
static bool find_bias(const struct mapping *m, uint64_t *bias)
{
    struct elf_file elf;
    bool found = false;
    if (!elf_file_open(&elf, m->path))
        return false;
    for (size_t i = 0; i < elf.count && !found; i++) {
        const Elf64_Phdr *h = &elf.headers[i];
        if (h->p_type != PT_LOAD || !(h->p_flags & PF_X) || m->offset > h->p_offset ||
            h->p_offset - m->offset >= 4096)
            continue;
        *bias = m->start + (h->p_offset - m->offset) - h->p_vaddr;
        found = true;
    }
    elf_file_close(&elf);
    return found;
}

void maps_each_file(int pid,
                    void (*each)(void *context, uint64_t start, uint64_t end, const char *path),
                    void *context)
{
    struct mapping m;
    SMALL_FILE_LINES(lines, "/proc/%d/maps", pid)
        if (read_line(lines.text, "", &m))
            each(context, m.start, m.end, m.path);
}

void maps_each(int pid, const char *root, void (*each)(const trail_module *map, void *context),
               void *context)
{
    struct mapping m;
    SMALL_FILE_LINES(lines, "/proc/%d/maps", pid) {
        trail_module map = {0};
        if (!read_line(lines.text, root, &m) || !m.code || !find_bias(&m, &map.bias))
            continue;
        map.start = m.start;
        map.end = m.end;
        map.path = text_from(m.path);
        each(&map, context);
    }
}

void maps_each_shared(int pid, void (*each)(void *context, const struct shared_mapping *m),
                      void *context)
{
    char permissions[5];
    struct shared_mapping m;
    SMALL_FILE_LINES(lines, "/proc/%d/maps", pid)
        if (sscanf(lines.text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &m.start,
                   &m.end, permissions, &m.offset, &m.major, &m.minor, &m.inode) == 7 &&
            permissions[3] == 's' && m.inode != 0)
            each(context, &m);
}
