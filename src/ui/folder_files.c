/* Lists the files of a folder: see folder_files.h. */
#include "ui/folder_files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ui/cli.h"

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
