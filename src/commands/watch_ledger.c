#include "commands/watch_ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/output.h"
#include "ui/cli.h"

/* Returns "SIZE SECONDS.NANOSECONDS NAME
 * "; NULL if out of memory. A line end in the name is written as "\
 * ". */
static char *line_of(const char *name, const struct stat *file)
{
    char *line = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&line, &size);
    if (!to)
        return NULL;
    fprintf(to, "%lld %lld.%09ld ", (long long)file->st_size, (long long)file->st_mtim.tv_sec,
            file->st_mtim.tv_nsec);
    for (; *name; name++)
        fputs(*name == '\n' ? "\\n" : (const char[]){*name, '\0'}, to);
    fputc('\n', to);
    return fclose(to) == 0 ? line : NULL;
}

static bool keep(struct ledger *ledger, char *line)
{
    if (!line || !GROW(ledger->lines, ledger->capacity, ledger->count + 1)) {
        free(line);
        errno = ENOMEM;
        return false;
    }
    ledger->lines[ledger->count++] = line;
    return true;
}

/* A line cut off by a crash has no end: its file is handled again, and a new line begins. */
static bool read_lines(struct ledger *ledger, FILE *from)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    bool good = true;
    while (good && (size = getline(&line, &capacity, from)) > 0) {
        if (line[size - 1] == '\n')
            good = keep(ledger, strdup(line));
        else
            good = write_all(ledger->fd, "\n", 1);
    }
    free(line);
    return good;
}

int ledger_open(struct ledger *ledger, const char *path)
{
    *ledger = (struct ledger){.fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)};
    if (ledger->fd < 0)
        return print_output_error(path, errno);
    if (flock(ledger->fd, LOCK_EX | LOCK_NB) != 0) {
        print_message("%s: another trail watch writes there", path);
        return EXIT_USAGE;
    }
    FILE *from = fopen(path, "re");
    bool good = from && read_lines(ledger, from);
    int reason = errno;
    if (from)
        (void)fclose(from);
    return good ? EXIT_GOOD : print_output_error(path, reason);
}

bool ledger_has(const struct ledger *ledger, const char *name, const struct stat *file)
{
    char *line = line_of(name, file);
    bool found = false;
    for (size_t i = 0; line && i < ledger->count && !found; i++)
        found = strcmp(ledger->lines[i], line) == 0;
    free(line);
    return found;
}

bool ledger_add(struct ledger *ledger, const char *name, const struct stat *file)
{
    char *line = line_of(name, file);
    if (!line || !write_all(ledger->fd, line, strlen(line)) || fdatasync(ledger->fd) != 0) {
        free(line);
        return false;
    }
    return keep(ledger, line);
}

void ledger_close(struct ledger *ledger)
{
    for (size_t i = 0; i < ledger->count; i++)
        free(ledger->lines[i]);
    free(ledger->lines);
    if (ledger->fd >= 0)
        (void)close(ledger->fd);
    *ledger = (struct ledger){.fd = -1};
}
