/* The cache's folders: see cache_folder.h. */
#include "ui/cache_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ui/cli.h"
#include "ui/folders.h"

/* How long a file stays after its last use. */
#define KEPT_SECONDS (INT64_C(30) * 86400)

/* By the XDG Base Directory Specification. Returns false if there is none. */
static bool folder_path(const char *name, char *path, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (cache && *cache == '/')
        length = snprintf(path, size, "%s/trail/%s", cache, name);
    else if (home && *home == '/')
        length = snprintf(path, size, "%s/.cache/trail/%s", home, name);
    return length > 0 && (size_t)length < size;
}

/*
 * Traces may contain secrets, and root may have another user's HOME: the folder is the user's own,
 * and is not looked up again, since other users may replace what leads to it.
 */
int cache_folder_open(const char *name, int *folder)
{
    char path[4096];
    struct folders folders = {0};
    struct stat status;
    if (!folder_path(name, path, sizeof path)) {
        print_message("no folder for the cache: set XDG_CACHE_HOME or HOME");
        return EXIT_INOUT;
    }
    int code = folders_make(&folders, path);
    folders_end(&folders, true);
    if (code != EXIT_GOOD)
        return code;
    *folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*folder < 0 || fstat(*folder, &status) != 0)
        return print_output_error(path, errno);
    if (status.st_uid != geteuid()) {
        print_message("%s: the folder belongs to another user: set XDG_CACHE_HOME", path);
        return EXIT_INOUT;
    }
    return fchmod(*folder, 0700) == 0 ? EXIT_GOOD : print_output_error(path, errno);
}

void cache_folder_close(int fd)
{
    DIR *folder = fdopendir(fd);
    struct dirent *entry;
    time_t now = time(NULL);
    while (folder && (entry = readdir(folder))) {
        struct stat file;
        if (fstatat(dirfd(folder), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(file.st_mode) && file.st_mtime < now - KEPT_SECONDS)
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder)
        (void)closedir(folder);
    else
        (void)close(fd);
}
