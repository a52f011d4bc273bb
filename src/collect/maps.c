/*
 * Reads the libraries that a program has loaded while it ran from the kernel's list of its
 * mappings. The program's own list (preload/modules.c) has those that were loaded at its start.
 *
 * A mapping is the address of a part of a file; the bias of its addresses is computed from the
 * file's program headers.
 */
#include "collect/maps.h"

#include <stdio.h>

#include "base/small_file.h"
#include "base/text.h"
#include "collect/elf_file.h"
#include "shm/mapping.h"

/* Computes the bias: a mapped address minus the file's own. False: not code of an ELF file. */
static bool find_bias(const struct mapping *m, const char *path, uint64_t *bias)
{
    struct elf_file elf;
    bool found = false;
    if (!elf_file_open(&elf, path))
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

void maps_each(int pid, const char *root, void (*each)(const trail_module *map, void *context),
               void *context)
{
    struct mapping m;
    char path[512];
    SMALL_FILE_LINES(lines, "/proc/%d/maps", pid) {
        trail_module map = {0};
        if (!mapping_read(lines.text, &m) || *m.path != '/' || !m.is_code)
            continue;
        (void)snprintf(path, sizeof path, "%s%s", root, m.path);
        if (!find_bias(&m, path, &map.bias))
            continue;
        map.start = m.start;
        map.end = m.end;
        map.path = text_from(path);
        each(&map, context);
    }
}
