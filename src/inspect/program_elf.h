/*
 * What the file of a program says about how it starts and what it brings along.
 */
#ifndef TRAIL_INSPECT_PROGRAM_ELF_H
#define TRAIL_INSPECT_PROGRAM_ELF_H

#include "inspect/program.h"

/* Opens a regular file for reading, without waiting. A descriptor, or -1 with errno. */
int program_open(const char *path);

/*
 * Whether libelf can be let loose on the sections of `fd`: it reserves memory for as many as a file
 * with more than 65,279 of them claims to have, and no program has.
 */
bool program_sections_sane(int fd);

/*
 * Looks into the ELF file at `fd`, whose path is program->runs, and refuses it if need be. The
 * caller has seen that it begins as an ELF file.
 */
void program_look_elf(struct program *program, int fd);

#endif
