/* The message about debug information that was not opened because of the kind of its file. */
#ifndef TRAIL_UI_REFUSED_FILE_H
#define TRAIL_UI_REFUSED_FILE_H

/* Prints which file was refused (symbols/named_files.h) and why; nothing if none was. */
void print_refused_file(void);

#endif
