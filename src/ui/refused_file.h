/* The message about debug information that was not opened because of the kind of its file. */
#pragma once

/* Prints which file was refused (symbols/named_files.h) and why; nothing if none was. */
void print_refused_file(void);
