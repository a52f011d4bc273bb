#include "inspect/preload_path.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef TRAIL_PRELOAD_DIR
#define TRAIL_PRELOAD_DIR "../lib/trail" /* installed library, relative to the command's folder */
#endif
#define FILE_NAME   "libtrail-preload.so"
#define OPENMP_NAME "libtrail-ompt.so"
#define HEAP_NAME   "libtrail-heap.so"

/* Gets the folder of the running command. */
static bool own_folder(char *folder, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    if (length <= 0)
        return false;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

/* Checks the file. LD_PRELOAD is split at spaces and colons, so its name must not contain any. */
static bool take(struct preload *preload, const char *path)
{
    struct stat file;
    if (!realpath(path, preload->path))
        *preload->path = '\0';
    else if (stat(preload->path, &file) < 0 || !S_ISREG(file.st_mode) ||
             access(preload->path, R_OK) < 0)
        errno = EACCES;
    else if (!strpbrk(preload->path, " \t\n:;$"))
        return true;
    else
        errno = EINVAL;
    return false;
}

static bool fail(struct preload *preload, const char *path, const char *advice)
{
    (void)snprintf(preload->wrong, sizeof preload->wrong, "%s: %s: %s", path,
                   errno == EINVAL ? "LD_PRELOAD cannot have spaces, colons or $ in a path"
                                   : strerror(errno),
                   advice);
    *preload->path = '\0';
    return false;
}

/* Looks next to the recorder: as installed, then as built. Without it, OpenMP is not recorded. */
static void find_openmp(struct preload *preload)
{
    static const char *const places[] = {"", "../ompt/"};
    const char *slash = strrchr(preload->path, '/');
    char path[2 * PATH_MAX];
    for (size_t i = 0; slash && i < sizeof places / sizeof *places && !*preload->openmp; i++) {
        (void)snprintf(path, sizeof path, "%.*s/%s" OPENMP_NAME, (int)(slash - preload->path),
                       preload->path, places[i]);
        if (!realpath(path, preload->openmp) || access(preload->openmp, R_OK) < 0)
            *preload->openmp = '\0';
    }
}

/* The places used by Debian, Fedora and LLVM's own packages. */
bool preload_libomp(char *path, size_t size)
{
    static const char *const places[] = {
#if defined(__x86_64__)
        "/usr/lib/x86_64-linux-gnu/libomp.so.5",
#elif defined(__aarch64__)
        "/usr/lib/aarch64-linux-gnu/libomp.so.5",
#endif
        "/usr/lib64/libomp.so",
        "/usr/lib/llvm-*/lib/libomp.so.5",
        "/usr/local/lib/libomp.so"
    };
    glob_t found;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        bool there = glob(places[i], 0, NULL, &found) == 0;
        if (there)
            (void)snprintf(path, size, "%s", found.gl_pathv[found.gl_pathc - 1]);
        globfree(&found);
        if (there)
            return true;
    }
    return false;
}

static bool find_preload(struct preload *preload)
{
    memset(preload, 0, sizeof *preload);
    const char *given = getenv("TRAIL_PRELOAD");
    if (given && *given)
        return take(preload, given) || fail(preload, given, "named by TRAIL_PRELOAD; unset it");

    static const char *const places[] = {TRAIL_PRELOAD_DIR, "src/preload"};
    char folder[PATH_MAX], path[2 * PATH_MAX];
    bool known = own_folder(folder, sizeof folder);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        bool absolute = places[i][0] == '/';
        if (!absolute && !known)
            continue;
        (void)snprintf(path, sizeof path, "%s%s%s/" FILE_NAME, absolute ? "" : folder,
                       absolute ? "" : "/", places[i]);
        if (take(preload, path))
            return true;
        if (errno == EINVAL)
            return fail(preload, path, "install trail elsewhere");
    }
    errno = ENOENT;
    return fail(preload, FILE_NAME,
                "install it with the command, or let TRAIL_PRELOAD name where it is");
}

bool preload_path(struct preload *preload)
{
    if (!find_preload(preload))
        return false;
    find_openmp(preload);
    return true;
}

bool preload_path_with_heap(struct preload *preload)
{
    char path[PATH_MAX + sizeof HEAP_NAME];
    if (!preload_path(preload))
        return false;
    (void)snprintf(path, sizeof path, "%.*s" HEAP_NAME,
                   (int)(strrchr(preload->path, '/') + 1 - preload->path), preload->path);
    return take(preload, path) || fail(preload, path, "it belongs beside " FILE_NAME);
}
