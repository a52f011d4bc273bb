/* Temporary files: see temporary.h. */
#include "base/temporary.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int file_in(const char *folder)
{
    char name[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* Not every file system makes files without a name. */
    int size = snprintf(name, sizeof name, "%s/trail-XXXXXX", folder);
    if (size < 0 || (size_t)size >= sizeof name)
        return -1;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(name);
    return fd;
}

int temporary_file(void)
{
    const char *folder = getenv("TMPDIR");
    if (folder && *folder)
        return file_in(folder);
    int fd = file_in("/var/tmp");
    return fd >= 0 ? fd : file_in("/tmp");
}
