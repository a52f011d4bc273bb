/* Output files that appear complete or not at all. */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/part_name.h"
#include "base/text.h"

bool output_error(trail_error *err, const char *title, int reason)
{
    const char *why = strerror(reason), *cut = "";
    const char *more = reason == EPIPE ? ": its reader has gone" : "";
    size_t room = TRAIL_MESSAGE_MAX - sizeof "cannot write : " - strlen(why) - strlen(more);
    if (strlen(title) > room) {
        cut = "...";
        title += strlen(title) - (room - strlen(cut));
        while (((uint8_t)*title & 0xc0) == 0x80) /* the rest of a split character */
            title++;
    }
    (void)error_set(err, TRAIL_IO, "cannot write %s%s: %s%s", cut, title, why, more);
    return false;
}

bool write_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool write_output(void *context, const void *data, size_t size)
{
    struct output *output = context;
    bool written = output->to_terminal ? terminal_write(&output->terminal, data, size)
                                       : write_all(output->fd, data, size);
    if (!written)
        output->reason = errno;
    return written;
}

trail_sink output_sink(struct output *output)
{
    return (trail_sink){.write = write_output, .context = output};
}

bool overwrites(const char *path, const char *word)
{
    struct stat input, there;
    struct part_name part;
    const char *file = part_name_parse(word, &part) ? part.file : word;
    bool known =
        strcmp(file, "-") == 0 ? fstat(STDIN_FILENO, &input) == 0 : stat(file, &input) == 0;
    return strcmp(path, "-") != 0 && known && stat(path, &there) == 0 && S_ISREG(there.st_mode) &&
           there.st_dev == input.st_dev && there.st_ino == input.st_ino;
}

bool output_open(struct output *output, const char *path, trail_error *err)
{
    *output = (struct output){.fd = STDOUT_FILENO};
    if (strcmp(path, "-") != 0)
        output->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (output->fd < 0)
        return output_error(err, path, errno);
    output->to_terminal = isatty(output->fd);
    output->terminal = (struct terminal){.fd = output->fd};
    return true;
}

/*
 * Opens a file without a name in the folder of `path`. Returns -1 if that is not supported, or if
 * it could not be named later.
 */
static int open_nameless(const char *path)
{
    char *copy = access("/proc/self/fd", X_OK) == 0 ? strdup(path) : NULL;
    int fd = copy ? open(dirname(copy), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
    free(copy);
    return fd;
}

char *output_hidden(const char *path, const char *ending)
{
    const char *name = path_name(path);
    char *hidden = NULL;
    return asprintf(&hidden, "%.*s.%s.%s", (int)(name - path), path, name, ending) < 0 ? NULL
                                                                                       : hidden;
}

/* Returns the same kind of name, made from the file's inode number. */
static char *hidden_by_number(const struct output *output, const char *path)
{
    char number[24];
    struct stat file;
    if (fstat(output->fd, &file) != 0)
        return NULL;
    (void)snprintf(number, sizeof number, "%ju", (uintmax_t)file.st_ino);
    return output_hidden(path, number);
}

static int open_beside(char *beside)
{
    int fd = mkostemp(beside, O_CLOEXEC);
    mode_t mask = umask(0);
    (void)umask(mask);
    if (fd >= 0)
        (void)fchmod(fd, 0666 & ~mask);
    return fd;
}

bool output_open_beside(struct output *output, const char *path, trail_error *err)
{
    struct stat there;
    if (strcmp(path, "-") == 0 || (lstat(path, &there) == 0 && !S_ISREG(there.st_mode)))
        return output_open(output, path, err);
    *output = (struct output){.fd = open_nameless(path), .nameless = true};
    if (output->fd >= 0)
        return true;
    output->nameless = false;
    output->beside = output_hidden(path, "XXXXXX");
    if (!output->beside)
        return output_error(err, path, ENOMEM);
    output->fd = open_beside(output->beside);
    if (output->fd >= 0)
        return true;
    int reason = errno;
    free(output->beside);
    output->beside = NULL;
    return output_error(err, path, reason);
}

static bool link_as(const struct output *output, const char *path)
{
    char self[32];
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", output->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

/*
 * Gives a nameless file its name. link(2) does not replace a file: to replace one, a temporary name
 * is renamed.
 */
static bool give_name(const struct output *output, const char *path)
{
    if (link_as(output, path))
        return true;
    char *beside = errno == EEXIST ? hidden_by_number(output, path) : NULL;
    if (!beside)
        return false;
    bool linked = link_as(output, beside), named = linked && rename(beside, path) == 0;
    int reason = errno;
    if (linked && !named)
        (void)unlink(beside);
    free(beside);
    errno = reason;
    return named;
}

/* Closes the descriptor, which may report a delayed write error. */
static void close_file(struct output *output)
{
    if (close(output->fd) < 0 && !output->reason)
        output->reason = errno;
    output->fd = -1;
}

/* Closes a file opened beside its name, and names it if it is complete. */
static bool close_beside(struct output *output, const char *path, bool made, trail_error *err)
{
    bool whole = made && !output->reason;
    if (whole && output->nameless && !give_name(output, path))
        output->reason = errno;
    close_file(output);
    whole = whole && !output->reason;
    if (whole && output->beside && rename(output->beside, path) < 0) {
        output->reason = errno;
        whole = false;
    }
    if (!whole && output->beside)
        (void)unlink(output->beside);
    free(output->beside);
    output->beside = NULL;
    return output->reason ? output_error(err, path, output->reason) : true;
}

/* Gives a nameless file a temporary name beside `path`. */
static bool name_beside(struct output *output, const char *path)
{
    output->beside = hidden_by_number(output, path);
    if (!output->beside)
        return false;
    if (link_as(output, output->beside))
        return true;
    int reason = errno;
    free(output->beside);
    output->beside = NULL;
    errno = reason;
    return false;
}

bool output_settle(struct output *output, const char *path, trail_error *err)
{
    if (!output->reason && output->nameless && !name_beside(output, path))
        output->reason = errno;
    output->nameless = false;
    close_file(output);
    return output->reason ? output_error(err, path, output->reason) : true;
}

bool output_name(struct output *output, const char *path, trail_error *err)
{
    if (output->beside && rename(output->beside, path) < 0)
        return output_error(err, path, errno);
    free(output->beside);
    output->beside = NULL;
    return true;
}

void output_drop(struct output *output)
{
    if (output->beside)
        (void)unlink(output->beside);
    free(output->beside);
    output->beside = NULL;
    if (output->fd >= 0)
        (void)close(output->fd);
    output->fd = -1;
}

bool output_close(struct output *output, const char *path, bool made, trail_error *err)
{
    bool to_stdout = strcmp(path, "-") == 0;
    struct stat file;
    if (output->nameless || output->beside)
        return close_beside(output, path, made, err);
    if (!made && !to_stdout && fstat(output->fd, &file) == 0 && S_ISREG(file.st_mode))
        (void)unlink(path);
    if (output->to_terminal && !output->reason && !terminal_finish(&output->terminal))
        output->reason = errno;
    if (!to_stdout)
        close_file(output);
    return output->reason ? output_error(err, to_stdout ? "the output" : path, output->reason)
                          : true;
}
