/* Keeps what the viewer computed: see shelf.h. */
#include "serve/shelf.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"

/* An answer's file: the key with its NUL, then the answer. */
#define MOST_KEPT ((off_t)64 << 20)

struct shelf shelf_of(int folder, const struct intake *intake, const char *variant)
{
    struct shelf shelf = {.folder = -1};
    uint64_t file;
    if (folder >= 0 && intake_identity(intake, &file)) {
        shelf.folder = folder;
        shelf.trace = hash_mix(file, hash_bytes(variant, strlen(variant)));
    }
    return shelf;
}

void shelf_name(const struct shelf *shelf, const char *key, char name[SHELF_NAME])
{
    (void)snprintf(name, SHELF_NAME, "%016" PRIx64 "-%016" PRIx64, shelf->trace,
                   hash_bytes(key, strlen(key)));
}

int shelf_open(const struct shelf *shelf, const char *key)
{
    char name[SHELF_NAME];
    if (shelf->folder < 0)
        return -1;
    shelf_name(shelf, key, name);
    int fd = openat(shelf->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        (void)futimens(fd, NULL);
    return fd;
}

/* Reads a file that is no larger than an answer may be. The caller frees it; NULL on an error. */
static char *read_whole(int fd, size_t *size)
{
    struct stat file;
    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size > MOST_KEPT)
        return NULL;
    char *data = malloc((size_t)file.st_size + 1);
    if (data && pread(fd, data, (size_t)file.st_size, 0) != file.st_size) {
        free(data);
        data = NULL;
    }
    *size = (size_t)file.st_size;
    return data;
}

char *shelf_take(const struct shelf *shelf, const char *key, size_t *size)
{
    size_t skip = strlen(key) + 1;
    int fd = shelf_open(shelf, key);
    char *data = fd >= 0 ? read_whole(fd, size) : NULL;
    if (fd >= 0)
        (void)close(fd);
    if (!data || *size <= skip || memcmp(data, key, skip) != 0) {
        free(data);
        return NULL;
    }
    *size -= skip;
    memmove(data, data + skip, *size);
    return data;
}

void shelf_put(const struct shelf *shelf, const char *key, const char *data, size_t size)
{
    char name[SHELF_NAME], fresh[SHELF_NAME + 32];
    size_t skip = strlen(key) + 1;
    if (shelf->folder < 0 || size > (size_t)MOST_KEPT - skip)
        return;
    shelf_name(shelf, key, name);
    (void)snprintf(fresh, sizeof fresh, ".%ld-%s", (long)getpid(), name);
    int fd =
        openat(shelf->folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    bool good = file_write_at(fd, key, skip, 0) && file_write_at(fd, data, size, (int64_t)skip) &&
                fdatasync(fd) == 0;
    (void)close(fd);
    if (!good || renameat(shelf->folder, fresh, shelf->folder, name) != 0)
        (void)unlinkat(shelf->folder, fresh, 0);
}
