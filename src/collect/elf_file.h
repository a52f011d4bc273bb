/*
 * Reads the program headers and sections of an ELF file whose path comes from a recorded program,
 * or from the kernel: it may be any file, and may change while it is read. Only regular files are
 * opened, all numbers are checked, and nothing is mapped.
 */
#ifndef TRAIL_COLLECT_ELF_FILE_H
#define TRAIL_COLLECT_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_FILE_HEADERS 64

struct elf_file {
    int fd;
    uint64_t size; /* of the file */
    size_t count;
    Elf64_Phdr headers[ELF_FILE_HEADERS];
};

/* False: not a 64-bit ELF file that can be read. The caller closes an opened one. */
bool elf_file_open(struct elf_file *elf, const char *path);
void elf_file_close(struct elf_file *elf);

/* Returns the first header of a type; NULL: there is none. */
const Elf64_Phdr *elf_file_find(const struct elf_file *elf, uint32_t type);

/* Describes a section that is loaded with the program as a part of the file; false: there is none
 * of that name. */
bool elf_file_section(const struct elf_file *elf, const char *name, Elf64_Phdr *part);

/* Returns the p_filesz bytes of a header's part of the file, which the caller frees; NULL: they
 * cannot be read. */
char *elf_file_read(const struct elf_file *elf, const Elf64_Phdr *header);

#endif
