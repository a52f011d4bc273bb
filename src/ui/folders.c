/* Makes folders, and removes them again after a failure. */
#include "ui/folders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "ui/cli.h"

/* Returns errno, or 0. */
static int make_one(struct folders *folders, const char *path)
{
    char *name = strdup(path);
    if (!name || !GROW(folders->made, folders->capacity, folders->count + 1)) {
        free(name);
        return ENOMEM;
    }
    if (mkdir(path, 0777) == 0) {
        folders->made[folders->count++] = name;
        return 0;
    }
    int reason = errno == EEXIST ? 0 : errno;
    free(name);
    return reason;
}

int folders_make(struct folders *folders, const char *path)
{
    char *copy = strdup(path);
    int failed = copy ? 0 : ENOMEM;
    for (char *at = copy ? copy + 1 : NULL; at && !failed; at++) {
        char c = *at;
        if (c != '/' && c != '\0')
            continue;
        *at = '\0';
        failed = make_one(folders, copy);
        *at = c;
        if (c == '\0')
            break;
    }
    free(copy);
    return failed ? print_output_error(path, failed) : EXIT_GOOD;
}

void folders_end(struct folders *folders, bool stay)
{
    while (folders->count > 0) {
        char *path = folders->made[--folders->count];
        if (!stay)
            (void)rmdir(path);
        free(path);
    }
    free(folders->made);
    *folders = (struct folders){0};
}
