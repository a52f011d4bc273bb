/* Makes folders, removes them again after a failure, and lists files: see folders.h. */
#include "ui/folders.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
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

/* MARK: Files */

bool is_folder(const char *path)
{
    struct stat of;
    return strcmp(path, "-") != 0 && stat(path, &of) == 0 && S_ISDIR(of.st_mode);
}

static int take_entry(const char *folder, const char *name,
                      int (*take)(void *context, const char *path), void *context)
{
    struct stat of;
    char *path = NULL;
    int code = EXIT_GOOD;
    if (*name == '.')
        return code;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return exit_no_memory();
    if (stat(path, &of) == 0 && S_ISREG(of.st_mode))
        code = take(context, path);
    free(path);
    return code;
}

int folder_each(const char *folder, int (*take)(void *context, const char *path), void *context)
{
    struct dirent **names;
    int count = scandir(folder, &names, NULL, alphasort), code = EXIT_GOOD;
    if (count < 0) {
        print_message("cannot read %s: %m", folder);
        return EXIT_INOUT;
    }
    for (int i = 0; i < count; i++) {
        if (code == EXIT_GOOD)
            code = take_entry(folder, names[i]->d_name, take, context);
        free(names[i]);
    }
    free((void *)names);
    return code;
}
