/* Reports a refused file of debug information: see refused_file.h. */
#include "ui/refused_file.h"

#include "symbols/named_files.h"
#include "ui/cli.h"

void print_refused_file(void)
{
    const struct refused_file *file = named_files_refused();
    if (*file->problem)
        print_message("%s: %s; names and lines from it are missing", file->path, file->problem);
}
