/*
 * Reads the program headers and sections of an ELF file whose path comes from a recorded program,
 * or from the kernel: it may be any file, and may change while it is read. Only regular files are
 * opened, all numbers are checked, and nothing is mapped.
 */
#pragma once

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

/* False: not a readable 64-bit ELF file. The caller closes a file that was opened. */
bool elf_file_open(struct elf_file *elf, const char *path);
void elf_file_close(struct elf_file *elf);

/* Returns the first header of a type; NULL: none. */
const Elf64_Phdr *elf_file_find(const struct elf_file *elf, uint32_t type);

/* Describes a section that is loaded from the file with the program; false: no section of that
 * name. */
bool elf_file_section(const struct elf_file *elf, const char *name, Elf64_Phdr *part);

/* Returns the p_filesz bytes that a header describes, which the caller frees; NULL: they cannot be
 * read. */
char *elf_file_read(const struct elf_file *elf, const Elf64_Phdr *header);
