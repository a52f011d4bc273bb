#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int exit_code_of(const trail_error *err)
{
    switch (err->code) {
    case TRAIL_OK:
        return EXIT_GOOD;
    case TRAIL_USAGE:
        return EXIT_USAGE;
    case TRAIL_IO:
    case TRAIL_NO_MEMORY:
        return EXIT_INOUT;
    default:
        return EXIT_BAD;
    }
}

trail_error no_error(void)
{
    return (trail_error){
        .offset = TRAIL_NOWHERE,
        .generation = TRAIL_NOWHERE,
        .batch = TRAIL_NOWHERE,
        .thread = TRAIL_NOWHERE,
        .proc = TRAIL_NOWHERE,
        .goroutine = TRAIL_NOWHERE,
        .time_ns = TRAIL_NOWHERE,
    };
}

const char *source_title(const char *word)
{
    return strcmp(word, "-") == 0 ? "stdin" : word;
}

trail_source *open_source(const char *word, trail_error *err)
{
    return strcmp(word, "-") == 0 ? trail_source_open_fd(STDIN_FILENO, err)
                                  : trail_source_open_path(word, err);
}

/* Whether the message is "cannot open WORD: ..." or the like: the word need not be told again. */
static bool names_word(const char *message, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = message; (at = strchr(at, ' ')) != NULL;) {
        at++;
        if (strncmp(at, word, length) == 0 && at[length] == ':')
            return true;
    }
    return false;
}

int tell_error(const char *word, const trail_error *err)
{
    char where[256];
    (void)trail_error_where(err, where, sizeof where);
    (void)fflush(stdout); /* so that what came before it is seen before it */
    bool named = err->code == TRAIL_IO && names_word(err->message, word);
    fprintf(stderr, "trail: %s%s%s%s%s%s\n", named ? "" : source_title(word), named ? "" : ": ",
            err->message, *where ? " (at " : "", where, *where ? ")" : "");
    return exit_code_of(err);
}

static bool write_output(void *context, const void *data, size_t size)
{
    struct output *output = context;
    const char *at = data;
    while (size > 0) {
        ssize_t n = write(output->fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            output->reason = errno;
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

trail_sink output_sink(struct output *output)
{
    return (trail_sink){.write = write_output, .context = output};
}

bool overwrites(const char *path, const char *word)
{
    struct stat input, there;
    bool known =
        strcmp(word, "-") == 0 ? fstat(STDIN_FILENO, &input) == 0 : stat(word, &input) == 0;
    return strcmp(path, "-") != 0 && known && stat(path, &there) == 0 && S_ISREG(there.st_mode) &&
           there.st_dev == input.st_dev && there.st_ino == input.st_ino;
}

int output_open(struct output *output, const char *path)
{
    *output = (struct output){.fd = STDOUT_FILENO};
    if (strcmp(path, "-") != 0)
        output->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return output->fd < 0 ? tell_output_error(path, errno) : EXIT_GOOD;
}

/* A file without a name in the folder of `path`; -1: there are none, or none that could be given one. */
static int open_nameless(const char *path)
{
    char *copy = access("/proc/self/fd", X_OK) == 0 ? strdup(path) : NULL;
    int fd = copy ? open(dirname(copy), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
    free(copy);
    return fd;
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

int output_open_beside(struct output *output, const char *path)
{
    struct stat there;
    if (strcmp(path, "-") == 0 || (lstat(path, &there) == 0 && !S_ISREG(there.st_mode)))
        return output_open(output, path);
    *output = (struct output){.fd = open_nameless(path), .nameless = true};
    if (output->fd >= 0)
        return EXIT_GOOD;
    output->nameless = false;
    if (asprintf(&output->beside, "%s.XXXXXX", path) < 0) {
        output->beside = NULL;
        return tell_output_error(path, ENOMEM);
    }
    output->fd = open_beside(output->beside);
    if (output->fd >= 0)
        return EXIT_GOOD;
    int reason = errno;
    free(output->beside);
    output->beside = NULL;
    return tell_output_error(path, reason);
}

static bool link_as(const struct output *output, const char *path)
{
    char self[32];
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", output->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

/* Gives a nameless file its name. A link takes nobody's place: for that it has another name for a moment. */
static bool give_name(const struct output *output, const char *path)
{
    char *beside;
    struct stat file;
    if (link_as(output, path))
        return true;
    if (errno != EEXIST || fstat(output->fd, &file) != 0 ||
        asprintf(&beside, "%s.%ju", path, (uintmax_t)file.st_ino) < 0)
        return false;
    bool linked = link_as(output, beside), named = linked && rename(beside, path) == 0;
    int reason = errno;
    if (linked && !named)
        (void)unlink(beside);
    free(beside);
    errno = reason;
    return named;
}

/* Closes a file that was written beside; it gets its name if it is whole. */
static int close_beside(struct output *output, const char *path, bool made, int code)
{
    bool whole = made && !output->reason;
    if (whole && output->nameless && !give_name(output, path))
        output->reason = errno;
    if (close(output->fd) < 0 && !output->reason)
        output->reason = errno;
    whole = whole && !output->reason;
    if (whole && output->beside && rename(output->beside, path) < 0) {
        output->reason = errno;
        whole = false;
    }
    if (!whole && output->beside)
        (void)unlink(output->beside);
    free(output->beside);
    output->beside = NULL;
    return output->reason ? tell_output_error(path, output->reason) : code;
}

int output_close(struct output *output, const char *path, bool made, int code)
{
    bool to_stdout = strcmp(path, "-") == 0;
    struct stat file;
    if (output->nameless || output->beside)
        return close_beside(output, path, made, code);
    if (!made && !to_stdout && fstat(output->fd, &file) == 0 && S_ISREG(file.st_mode))
        (void)unlink(path);
    if (!to_stdout && close(output->fd) < 0 && !output->reason)
        output->reason = errno;
    if (output->reason)
        code = tell_output_error(to_stdout ? "the output" : path, output->reason);
    return code;
}

int tell_output_error(const char *title, int reason)
{
    const char *more = reason == EPIPE ? ": whoever read it went away" : "";
    fprintf(stderr, "trail: cannot write %s: %s%s\n", title, strerror(reason), more);
    return EXIT_INOUT;
}

int finish_stdout(int code)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    return tell_output_error("the output", errno ? errno : EIO);
}
