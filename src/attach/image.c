/* Finds modules and symbols in the memory of another process: see image.h. */
#include "attach/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/present_memory.h"
#include "base/small_file.h"
#include "shm/mapping.h"

#define MOST_HEADERS        64
#define MOST_ENTRIES        2048 /* of a dynamic section */
#define MOST_MODULES        4096 /* a link map may be circular */
#define MOST_CONTRADICTIONS 8
#define MOST_CODE           ((size_t)64 << 20)
#define PAGE                UINT64_C(4096)

static bool copy(const struct image *image, uint64_t at, void *to, size_t size)
{
    return memory_of_other(image->pid, at, to, size) == (ssize_t)size;
}

/* MARK: The program */

struct headers {
    Elf64_Phdr of[MOST_HEADERS];
    size_t count;
};

static bool copy_headers(const struct image *image, uint64_t at, size_t count,
                         struct headers *headers)
{
    headers->count = count;
    return count > 0 && count <= MOST_HEADERS &&
           copy(image, at, headers->of, count * sizeof *headers->of);
}

static const Elf64_Phdr *header_of(const struct headers *headers, uint32_t type, uint32_t flags)
{
    for (size_t i = 0; i < headers->count; i++)
        if (headers->of[i].p_type == type && (headers->of[i].p_flags & flags) == flags)
            return &headers->of[i];
    return NULL;
}

/* Returns the address of the program's headers, from the auxiliary vector. */
static uint64_t find_program(pid_t pid, size_t *count)
{
    Elf64_auxv_t entries[64];
    char path[64];
    uint64_t at = 0;
    size_t read = 0;
    *count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
    FILE *file = fopen(path, "re");
    if (file) {
        read = fread(entries, sizeof *entries, sizeof entries / sizeof *entries, file);
        (void)fclose(file);
    }
    for (size_t i = 0; i < read && entries[i].a_type != AT_NULL; i++) {
        if (entries[i].a_type == AT_PHDR)
            at = entries[i].a_un.a_val;
        else if (entries[i].a_type == AT_PHNUM)
            *count = (size_t)entries[i].a_un.a_val;
    }
    return at;
}

/* Copies a dynamic section. Returns its number of entries. */
static size_t copy_dynamic(const struct image *image, uint64_t at, uint64_t size,
                           Elf64_Dyn entries[static MOST_ENTRIES])
{
    size_t count = (size_t)(size / sizeof *entries);
    if (count > MOST_ENTRIES)
        count = MOST_ENTRIES;
    return copy(image, at, entries, count * sizeof *entries) ? count : 0;
}

struct program {
    struct headers headers;
    uint64_t at, bias;
};

static bool copy_program(const struct image *image, struct program *program)
{
    size_t count;
    program->at = find_program(image->pid, &count);
    if (!program->at || !copy_headers(image, program->at, count, &program->headers))
        return false;
    const Elf64_Phdr *own = header_of(&program->headers, PT_PHDR, 0);
    program->bias = own ? program->at - own->p_vaddr : 0;
    return true;
}

/* Returns the address of the loader's data, which the loader stores in DT_DEBUG; 0: none. */
static uint64_t debug_of_program(const struct image *image, const struct program *program)
{
    Elf64_Dyn entries[MOST_ENTRIES];
    const Elf64_Phdr *dynamic = header_of(&program->headers, PT_DYNAMIC, 0);
    size_t count =
        dynamic ? copy_dynamic(image, program->bias + dynamic->p_vaddr, dynamic->p_memsz, entries)
                : 0;
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++)
        if (entries[i].d_tag == DT_DEBUG)
            return entries[i].d_un.d_ptr;
    return 0;
}

/* The same if the loader itself was executed, with the program as its argument. */
static uint64_t debug_of_loader(const struct image *image, const struct program *program)
{
    const Elf64_Phdr *dynamic = header_of(&program->headers, PT_DYNAMIC, 0);
    struct image loader = {.pid = image->pid, .bias = program->at & ~(PAGE - 1)};
    if (!dynamic || header_of(&program->headers, PT_INTERP, 0))
        return 0;
    loader.dynamic = loader.bias + dynamic->p_vaddr;
    loader.dynamic_size = dynamic->p_memsz;
    return image_symbol(&loader, "_r_debug");
}

/*
 * Returns the first entry of the link map; 0: none, or the loader is changing it (errno is EAGAIN).
 */
static uint64_t find_link_map(const struct image *image)
{
    struct program program;
    struct r_debug debug = {0};
    if (!copy_program(image, &program))
        return 0;
    uint64_t at = debug_of_program(image, &program);
    if (!at)
        at = debug_of_loader(image, &program);
    if (!at || !copy(image, at, &debug, sizeof debug))
        return 0;
    if (debug.r_state == RT_CONSISTENT && debug.r_map)
        return (uint64_t)(uintptr_t)debug.r_map;
    errno = EAGAIN;
    return 0;
}

bool image_is_static(pid_t pid)
{
    const struct image image = {.pid = pid};
    struct program program;
    return copy_program(&image, &program) && !header_of(&program.headers, PT_INTERP, 0) &&
           !debug_of_loader(&image, &program);
}

/* MARK: Modules */

static bool has_name(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    if (*name == '/')
        return strcmp(path, name) == 0;
    return strncmp(slash ? slash + 1 : path, name, strlen(name)) == 0;
}

/*
 * Takes the module's path from the mapping of its first byte, and checks that its code is mapped
 * from the same file, at the offset in its headers.
 */
static bool find_mappings(struct image *image)
{
    struct mapping m, first = {0};
    SMALL_FILE_LINES(lines, "/proc/%d/maps", (int)image->pid) {
        if (!mapping_read(lines.text, &m))
            continue;
        if (m.start == image->bias && m.offset == 0 && m.inode > 0) {
            (void)snprintf(image->path, sizeof image->path, "%s", m.path);
            first = m;
        }
        image->map = m.start;
        image->map_end = m.end;
        if (mapping_has(&m, image->code) && m.is_code && mapping_is_same_file(&m, &first) &&
            m.offset + (image->code - m.start) == image->code_offset)
            return true;
    }
    return false;
}

/* The first segment of a library has the address 0, so its header is at the bias. */
static bool read_module(struct image *image, const struct link_map *module)
{
    struct headers headers;
    Elf64_Ehdr header = {0};
    image->bias = module->l_addr;
    if (!copy(image, image->bias, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(Elf64_Phdr) ||
        !copy_headers(image, image->bias + header.e_phoff, header.e_phnum, &headers))
        return false;
    const Elf64_Phdr *code = header_of(&headers, PT_LOAD, PF_X);
    const Elf64_Phdr *dynamic = header_of(&headers, PT_DYNAMIC, 0);
    if (!code || !dynamic || image->bias + dynamic->p_vaddr != (uint64_t)(uintptr_t)module->l_ld)
        return false;
    image->dynamic = image->bias + dynamic->p_vaddr;
    image->dynamic_size = dynamic->p_memsz;
    image->code = image->bias + code->p_vaddr;
    image->end = image->code + code->p_filesz;
    image->code_offset = code->p_offset;
    return find_mappings(image);
}

/* Copies a name. The page after its end may be missing. */
static bool copy_name(const struct image *image, uint64_t at, char *name, size_t size)
{
    size_t first = (size_t)(PAGE - at % PAGE);
    memset(name, 0, size);
    if (first > size - 1)
        first = size - 1;
    if (!copy(image, at, name, first))
        return false;
    if (!memchr(name, '\0', first))
        (void)copy(image, at + first, name + first, size - 1 - first);
    return true;
}

bool image_find(struct image *image, pid_t pid, const char *name)
{
    unsigned contradictions = 0;
    *image = (struct image){.pid = pid};
    errno = 0;
    uint64_t at = find_link_map(image);
    if (!at) {
        errno = errno ? errno : ENOENT;
        return false;
    }
    for (size_t i = 0; i < MOST_MODULES && at; i++) {
        struct link_map module = {0};
        char its[sizeof image->path];
        if (!copy(image, at, &module, sizeof module))
            return false;
        at = (uint64_t)(uintptr_t)module.l_next;
        if (!copy_name(image, (uint64_t)(uintptr_t)module.l_name, its, sizeof its))
            return false;
        if (!has_name(its, name))
            continue;
        if (read_module(image, &module))
            return true;
        /* Each comparison reads the list of mappings. */
        errno = EINVAL;
        if (++contradictions == MOST_CONTRADICTIONS)
            return false;
    }
    if (at == 0 && contradictions == 0)
        errno = 0;
    return false;
}

/* MARK: Tables */

struct tables {
    uint64_t bias, symbols, names, names_size, hash;
};

/* The loader has turned these offsets into addresses. */
static uint64_t address_of(const struct tables *t, uint64_t value)
{
    return value < t->bias ? t->bias + value : value;
}

static bool read_tables(const struct image *image, struct tables *t)
{
    Elf64_Dyn entries[MOST_ENTRIES];
    size_t count = copy_dynamic(image, image->dynamic, image->dynamic_size, entries);
    *t = (struct tables){.bias = image->bias};
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
 * The table: its header, a Bloom filter, a bucket for each hash with the first symbol of a chain,
 * and the hashes of the symbols, whose lowest bit ends a chain (the GNU hash section).
 */
uint64_t image_symbol(const struct image *image, const char *name)
{
    struct {
        uint32_t buckets, first, bloom, shift;
    } header = {0};
    uint32_t wanted = hash_of(name), index = 0, hash = 0;
    uint64_t address;
    struct tables t;
    if (!read_tables(image, &t) || !copy(image, t.hash, &header, sizeof header) ||
        header.buckets == 0)
        return 0;
    uint64_t buckets = t.hash + sizeof header + (uint64_t)header.bloom * sizeof(uint64_t);
    uint64_t chains = buckets + (uint64_t)header.buckets * sizeof(uint32_t);
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

/* MARK: Its file */

#define SAME_HEADER 1024 /* bytes: the headers and the build ID */

/* Opens a regular file if it is the module's. */
static int open_if_same(const struct image *image, const char *path)
{
    uint8_t here[SAME_HEADER], there[SAME_HEADER];
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        copy(image, image->bias, there, sizeof there) &&
        pread(fd, here, sizeof here, 0) == (ssize_t)sizeof here &&
        memcmp(here, there, sizeof here) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* A file that was replaced can be opened through its mapping, by root. */
int image_file(const struct image *image, trail_error *err)
{
    char path[sizeof image->path + 64];
    (void)snprintf(path, sizeof path, "/proc/%d/root%s", (int)image->pid, image->path);
    int fd = open_if_same(image, path);
    if (fd >= 0)
        return fd;
    /* In another root directory the kernel shows the path that the reader would use. */
    fd = open_if_same(image, image->path);
    if (fd >= 0)
        return fd;
    (void)snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)image->pid,
                   image->map, image->map_end);
    fd = open_if_same(image, path);
    if (fd < 0)
        error_set(err, TRAIL_USAGE,
                  "%s has been replaced since process %d loaded it: restart the process, or run "
                  "trail as root (CAP_SYS_ADMIN), which can read the old file",
                  image->path, (int)image->pid);
    return fd;
}

bool image_code(const struct image *image, int file, uint64_t address, struct image_code *code,
                trail_error *err)
{
    struct image_code there = {.address = address};
    *code = there;
    if (!address)
        return true;
    if (address >= image->code && address < image->end &&
        image->end - address >= sizeof code->bytes &&
        pread(file, code->bytes, sizeof code->bytes,
              (off_t)(image->code_offset + (address - image->code))) ==
            (ssize_t)sizeof code->bytes &&
        copy(image, address, there.bytes, sizeof there.bytes) &&
        memcmp(code, &there, sizeof there) == 0)
        return true;
    error_set(err, TRAIL_USAGE,
              "the code of %s in process %d differs from the file: another tool has changed it, or "
              "the process has executed another program",
              image->path, (int)image->pid);
    return false;
}
