/*
 * Examines the ELF file of a program: how it starts, and the libraries and runtimes that it
 * contains.
 */
#pragma once

#include "inspect/program.h"

/* Opens a regular file for reading, without blocking. Returns a descriptor; -1 and errno. */
int program_open(const char *path);

/*
 * Whether libelf may read the sections of `fd`: for a file that claims more than 65,279 of them,
 * which no program has, libelf would allocate memory for all.
 */
bool program_sections_sane(int fd);

/*
 * Examines the ELF file at `fd`, whose path is program->runs, and refuses the program if it cannot
 * be recorded. The caller has checked the ELF magic.
 */
void program_inspect_elf(struct program *program, int fd);
