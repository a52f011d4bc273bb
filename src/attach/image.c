/* See image.h. */
#include "attach/image.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define MOST_HEADERS 64
#define MOST_ENTRIES 256 /* of the dynamic section */
#define MOST_CODE    ((size_t)64 << 20)

static bool copy(const struct image *image, uint64_t at, void *to, size_t size)
{
    struct iovec here = {to, size}, there = {(void *)(uintptr_t)at, size};
    return process_vm_readv(image->pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* MARK: Mappings */

static bool has_name(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    if (*name == '/')
        return strcmp(path, name) == 0;
    return *path == '/' && slash && strncmp(slash + 1, name, strlen(name)) == 0;
}

bool image_find(struct image *image, pid_t pid, const char *name)
{
    char path[64], line[sizeof image->path + 128], permissions[5];
    FILE *file;
    *image = (struct image){.pid = pid};
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        uint64_t start, end, offset;
        int at = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &start, &end,
                   permissions, &offset, &at) != 4 ||
            at == 0 || !has_name(line + at, name) ||
            (*image->path && strcmp(image->path, line + at) != 0))
            continue;
        if (offset == 0 && !image->base)
            image->base = start;
        if (permissions[2] == 'x' && !image->code) {
            image->code = start;
            image->end = end;
        }
        (void)snprintf(image->path, sizeof image->path, "%s", line + at);
    }
    if (file)
        (void)fclose(file);
    return image->base && image->code;
}

/* MARK: Tables */

struct tables {
    uint64_t bias, symbols, names, names_size, hash;
};

/* The difference between addresses in memory and in the file: the loader has put its first segment at the base. */
static bool find_dynamic(const struct image *image, uint64_t *bias, uint64_t *at, size_t *count)
{
    Elf64_Phdr headers[MOST_HEADERS] = {0};
    Elf64_Ehdr header = {0};
    uint64_t lowest = UINT64_MAX;
    const Elf64_Phdr *dynamic = NULL;
    if (!copy(image, image->base, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof *headers ||
        header.e_phnum == 0 || header.e_phnum > MOST_HEADERS ||
        !copy(image, image->base + header.e_phoff, headers, header.e_phnum * sizeof *headers))
        return false;
    for (size_t i = 0; i < header.e_phnum; i++) {
        if (headers[i].p_type == PT_LOAD && headers[i].p_vaddr < lowest)
            lowest = headers[i].p_vaddr;
        if (headers[i].p_type == PT_DYNAMIC)
            dynamic = &headers[i];
    }
    if (lowest == UINT64_MAX || !dynamic)
        return false;
    *bias = image->base - (lowest & ~UINT64_C(4095));
    *at = *bias + dynamic->p_vaddr;
    *count = dynamic->p_memsz / sizeof(Elf64_Dyn);
    return true;
}

/* The loader has made addresses of these offsets. */
static uint64_t address_of(const struct tables *t, uint64_t value)
{
    return value < t->bias ? t->bias + value : value;
}

static bool read_tables(const struct image *image, struct tables *t)
{
    Elf64_Dyn entries[MOST_ENTRIES] = {0};
    size_t count;
    uint64_t at;
    *t = (struct tables){0};
    if (!find_dynamic(image, &t->bias, &at, &count))
        return false;
    if (count > MOST_ENTRIES)
        count = MOST_ENTRIES;
    if (!copy(image, at, entries, count * sizeof *entries))
        return false;
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
        uint64_t value = entries[i].d_un.d_val;
        if (entries[i].d_tag == DT_SYMTAB)
            t->symbols = address_of(t, value);
        else if (entries[i].d_tag == DT_STRTAB)
            t->names = address_of(t, value);
        else if (entries[i].d_tag == DT_STRSZ)
            t->names_size = value;
        else if (entries[i].d_tag == DT_GNU_HASH)
            t->hash = address_of(t, value);
    }
    return t->symbols && t->names && t->hash;
}

/* MARK: Symbols */

static bool is_symbol(const struct image *image, const struct tables *t, uint32_t index,
                      const char *name, uint64_t *address)
{
    char text[128] = "";
    size_t size = strlen(name) + 1;
    Elf64_Sym symbol = {0};
    if (size > sizeof text ||
        !copy(image, t->symbols + (uint64_t)index * sizeof symbol, &symbol, sizeof symbol) ||
        symbol.st_shndx == SHN_UNDEF || symbol.st_name > t->names_size ||
        size > t->names_size - symbol.st_name ||
        !copy(image, t->names + symbol.st_name, text, size) || memcmp(text, name, size) != 0)
        return false;
    *address = t->bias + symbol.st_value;
    return true;
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (uint8_t)*name;
    return hash;
}

/*
 * The table: its header, a Bloom filter, a bucket for each hash with the first symbol of a chain, and the hashes of the
 * symbols, whose lowest bit ends a chain (the GNU hash section).
 */
uint64_t image_symbol(const struct image *image, const char *name)
{
    struct {
        uint32_t buckets, first, bloom, shift;
    } header = {0};
    uint32_t wanted = hash_of(name), index = 0, hash = 0;
    uint64_t buckets, chains, address;
    struct tables t;
    if (!read_tables(image, &t) || !copy(image, t.hash, &header, sizeof header) ||
        header.buckets == 0)
        return 0;
    buckets = t.hash + sizeof header + (uint64_t)header.bloom * sizeof(uint64_t);
    chains = buckets + (uint64_t)header.buckets * sizeof(uint32_t);
    if (!copy(image, buckets + wanted % header.buckets * sizeof index, &index, sizeof index) ||
        index < header.first)
        return 0;
    for (uint32_t i = index; i - index < 1u << 16; i++) {
        if (!copy(image, chains + (uint64_t)(i - header.first) * sizeof hash, &hash, sizeof hash))
            return 0;
        if ((hash | 1) == (wanted | 1) && is_symbol(image, &t, i, name, &address))
            return address;
        if (hash & 1)
            return 0;
    }
    return 0;
}

/* MARK: Code */

uint64_t image_bytes(const struct image *image, const void *bytes, size_t size)
{
    size_t all = (size_t)(image->end - image->code);
    const uint8_t *found = NULL;
    uint64_t address = 0;
    uint8_t *code = image->end > image->code && all <= MOST_CODE ? malloc(all) : NULL;
    if (code && copy(image, image->code, code, all))
        found = memmem(code, all, bytes, size);
    if (found)
        address = image->code + (uint64_t)(found - code);
    free(code);
    return address;
}
