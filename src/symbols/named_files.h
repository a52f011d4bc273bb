/*
 * The files of debug information that a program names: .gnu_debuglink, .gnu_debugaltlink, .dwo,
 * .dwp. libdw and libdwfl open them by path, some only when a name is looked up, and cannot be
 * given descriptors for all of them. Between named_files_begin and named_files_end, each file that
 * they open must be a regular file owned by root, the user or the program's owner, and an ELF file
 * of bounded size (inspect/elf_bounds.h). Opening any other file fails with EACCES.
 */
#pragma once

#include <limits.h>
#include <sys/types.h>

/*
 * Checks what this thread opens until named_files_end. `owner`: the owner of the program's file.
 * Does not nest.
 */
void named_files_begin(uid_t owner);
void named_files_end(void);

struct refused_file {
    char problem[128]; /* "": no file was refused */
    char path[PATH_MAX];
};

/* Notes a file that must not be opened, or an own file of the program; sets errno. */
void named_files_refuse(const char *path, const char *problem);

/* Returns the first such file, from any thread of this process or the one that reads programs. */
const struct refused_file *named_files_refused(void);
