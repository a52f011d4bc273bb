/*
 * Lists the module map and the clocks as lines of text. In the trace they are strings that no event
 * refers to, which readers ignore; `trail symbolize` resolves names with them.
 *
 *   trail.module start=0x7f.. end=0x7f.. bias=0x7f.. build-id=HEX path=/usr/lib/x.so
 *   trail.clock mono=NS wall=SEC.NSEC
 *
 * start and end: an executable segment in memory; bias: the difference between an address in memory
 * and in the file. A path that is too long keeps its end. Without a build ID: `build-id=-`.
 */
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/modules.h"
#include "wire/wall.h"
#include "wire/wire.h"

#define BUILD_ID_MAX 40

struct visit {
    void (*each)(const char *line, void *context);
    void *context;
    bool first;
};

/* Finds the GNU build ID in the notes of a segment and writes it in hex. */
static bool build_id_in(const char *at, size_t size, char *hex)
{
    const ElfW(Nhdr) * note;
    while (size >= sizeof *note) {
        note = (const ElfW(Nhdr) *)(const void *)at;
        size_t name = (note->n_namesz + 3u) & ~(size_t)3;
        size_t desc = (note->n_descsz + 3u) & ~(size_t)3;
        if (name > size || desc > size || sizeof *note + name + desc > size)
            return false;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
            memcmp(at + sizeof *note, "GNU", 4) == 0 && note->n_descsz <= BUILD_ID_MAX) {
            const unsigned char *id = (const unsigned char *)at + sizeof *note + name;
            for (size_t i = 0; i < note->n_descsz; i++)
                sprintf(hex + 2 * i, "%02x", id[i]);
            return note->n_descsz > 0;
        }
        at += sizeof *note + name + desc;
        size -= sizeof *note + name + desc;
    }
    return false;
}

static const char *build_id(const struct dl_phdr_info *info, char *hex)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_NOTE &&
            build_id_in((const char *)(info->dlpi_addr + header->p_vaddr), header->p_memsz, hex))
            return hex;
    }
    return "-";
}

/* Reads the path once, as chroot(2) may hide /proc later. The loader's lock is held. */
static const char *own_path(void)
{
    static char path[V2_MAX_STRING];
    ssize_t n = *path ? 0 : readlink("/proc/self/exe", path, sizeof path - 1);
    if (n > 0)
        path[n] = '\0';
    return path;
}

static int visit_module(struct dl_phdr_info *info, size_t size, void *context)
{
    char hex[2 * BUILD_ID_MAX + 1], line[V2_MAX_STRING + 1];
    struct visit *visit = context;
    const char *path = info->dlpi_name;
    (void)size;
    if (visit->first) {
        /* The program itself comes first, without a name. */
        path = own_path();
        visit->first = false;
    }
    if (!path || !*path)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        unsigned long long start = (unsigned long long)info->dlpi_addr + header->p_vaddr;
        size_t used, length = strlen(path);
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
            continue;
        used = (size_t)snprintf(
            line, sizeof line,
            "trail.module start=0x%llx end=0x%llx bias=0x%llx build-id=%s path=", start,
            start + header->p_memsz, (unsigned long long)info->dlpi_addr, build_id(info, hex));
        if (length > V2_MAX_STRING - used)
            path += length - (V2_MAX_STRING - used);
        snprintf(line + used, sizeof line - used, "%s", path);
        visit->each(line, visit->context);
    }
    return 0;
}

void modules_each(void (*each)(const char *line, void *context), void *context)
{
    struct visit visit = {each, context, true};
    struct timespec wall;
    char line[128];
    clock_gettime(CLOCK_REALTIME, &wall);
    snprintf(line, sizeof line, WALL_PREFIX "mono=%llu wall=%lld.%09ld",
             (unsigned long long)clock_ns(CLOCK_MONOTONIC), (long long)wall.tv_sec, wall.tv_nsec);
    each(line, context);
    dl_iterate_phdr(visit_module, &visit);
}
