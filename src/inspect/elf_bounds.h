/*
 * Whether libelf, libdw and libdwfl can read a file in bounded memory. They unpack compressed
 * sections completely, to the size that the file claims.
 */
#pragma once

/* The problem of a file that is not ELF. */
extern const char elf_bounds_no_elf[];

/*
 * Returns NULL if `fd` is an ELF file that they can read, else what is wrong with it. Completely
 * compressed files, which libdwfl would unpack, are refused.
 */
const char *elf_bounds_problem(int fd);
