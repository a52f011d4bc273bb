/* See elf_file.h. */
#include "collect/elf_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/regular_file.h"

static bool read_headers(struct elf_file *elf)
{
    Elf64_Ehdr header;
    if (file_read_at(elf->fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof elf->headers[0] || header.e_phnum > ELF_FILE_HEADERS ||
        header.e_phoff > INT64_MAX)
        return false;
    elf->count = header.e_phnum;
    ssize_t size = (ssize_t)(elf->count * sizeof elf->headers[0]);
    return file_read_at(elf->fd, elf->headers, (size_t)size, (int64_t)header.e_phoff) == size;
}

bool elf_file_open(struct elf_file *elf, const char *path)
{
    struct stat status;
    *elf = (struct elf_file){.fd = regular_file_open(path, NULL, &status)};
    if (elf->fd < 0)
        return false;
    elf->size = (uint64_t)status.st_size;
    if (read_headers(elf))
        return true;
    close(elf->fd);
    return false;
}

void elf_file_close(struct elf_file *elf)
{
    close(elf->fd);
}

const Elf64_Phdr *elf_file_find(const struct elf_file *elf, uint32_t type)
{
    for (size_t i = 0; i < elf->count; i++) {
        if (elf->headers[i].p_type == type)
            return &elf->headers[i];
    }
    return NULL;
}

char *elf_file_read(const struct elf_file *elf, const Elf64_Phdr *header)
{
    size_t size = (size_t)header->p_filesz;
    char *bytes;
    if (header->p_filesz == 0 || header->p_filesz > elf->size ||
        header->p_offset > elf->size - header->p_filesz || !(bytes = malloc(size)))
        return NULL;
    if (file_read_at(elf->fd, bytes, size, (int64_t)header->p_offset) == (ssize_t)size)
        return bytes;
    free(bytes);
    return NULL;
}

/* MARK: Sections */

#define MOST_SECTIONS 4096
#define MOST_NAMES    (1u << 20) /* bytes */

static Elf64_Phdr part_of(const Elf64_Shdr *section)
{
    return (Elf64_Phdr){
        .p_offset = section->sh_offset, .p_vaddr = section->sh_addr, .p_filesz = section->sh_size};
}

/* Finds the section among `count`, whose names are in the section `names`. */
static bool find_section(const struct elf_file *elf, const Elf64_Shdr *sections, size_t count,
                         const Elf64_Shdr *names, const char *name, Elf64_Phdr *part)
{
    Elf64_Phdr text = part_of(names);
    size_t size = strlen(name) + 1, i;
    char *bytes = text.p_filesz <= MOST_NAMES ? elf_file_read(elf, &text) : NULL;
    if (!bytes)
        return false;
    for (i = 0; i < count; i++) {
        const Elf64_Shdr *s = &sections[i];
        if ((s->sh_flags & SHF_ALLOC) && s->sh_type != SHT_NOBITS && text.p_filesz >= size &&
            s->sh_name <= text.p_filesz - size && memcmp(bytes + s->sh_name, name, size) == 0)
            break;
    }
    free(bytes);
    if (i == count)
        return false;
    *part = part_of(&sections[i]);
    return true;
}

bool elf_file_section(const struct elf_file *elf, const char *name, Elf64_Phdr *part)
{
    Elf64_Ehdr header;
    Elf64_Shdr *sections;
    Elf64_Phdr table = {0};
    if (file_read_at(elf->fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        header.e_shentsize != sizeof *sections || header.e_shnum > MOST_SECTIONS ||
        header.e_shstrndx >= header.e_shnum)
        return false;
    table.p_offset = header.e_shoff;
    table.p_filesz = header.e_shnum * sizeof *sections;
    sections = (Elf64_Shdr *)(void *)elf_file_read(elf, &table);
    bool found = sections && find_section(elf, sections, header.e_shnum,
                                          &sections[header.e_shstrndx], name, part);
    free(sections);
    return found;
}
