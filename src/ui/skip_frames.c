/* Reads the file of --skip-frames. */
#include "ui/skip_frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/cli.h"
#include "words/wrappers.h"

/* Limits: each pattern is compared with each frame. */
enum { PATTERNS_MOST = 1000, LINE_MOST = 1000 };

static size_t count_of(const char *const *patterns)
{
    size_t count = 0;
    while (patterns && patterns[count])
        count++;
    return count;
}

/* Takes ownership of the text. Returns false if out of memory. */
static bool add(const char ***patterns, char *text)
{
    size_t count = count_of(*patterns);
    const char **grown = text ? realloc((void *)*patterns, (count + 2) * sizeof *grown) : NULL;
    if (!grown) {
        free(text);
        return false;
    }
    grown[count] = text;
    grown[count + 1] = NULL;
    *patterns = grown;
    return true;
}

static int refuse(const char *path, size_t number, const char *line, const char *why)
{
    print_message("%s:%zu: '%.80s' is not a pattern of a function or file: %s", path, number, line,
                  why);
    return EXIT_USAGE;
}

/* Removes white space at both ends. */
static char *trim(char *line)
{
    static const char white[] = " \t\r\n";
    line += strspn(line, white);
    size_t size = strlen(line);
    while (size > 0 && strchr(white, line[size - 1]))
        line[--size] = '\0';
    return line;
}

static int take_line(const char *path, size_t number, char *text, size_t size,
                     const char ***patterns)
{
    if (strlen(text) != size)
        return refuse(path, number, text, "a NUL is in it");
    if (size > LINE_MOST)
        return refuse(path, number, text, "it is longer than 1000 bytes");
    const char *line = trim(text);
    if (*line == '\0' || *line == '#')
        return EXIT_GOOD;
    const char *wrong = skip_pattern_error(line);
    if (wrong)
        return refuse(path, number, line, wrong);
    if (count_of(*patterns) == PATTERNS_MOST)
        return refuse(path, number, line, "there are more than 1000");
    if (add(patterns, strdup(line)))
        return EXIT_GOOD;
    print_message("%s: no memory", path);
    return EXIT_INOUT;
}

int skip_frames_read(const char *path, const char ***patterns)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0, number = 0;
    ssize_t size = 0;
    int code = EXIT_GOOD;
    if (!file) {
        print_message("cannot open %s: %s", path, strerror(errno));
        return EXIT_INOUT;
    }
    while (code == EXIT_GOOD && (size = getline(&line, &room, file)) >= 0)
        code = take_line(path, ++number, line, (size_t)size, patterns);
    if (code == EXIT_GOOD && ferror(file)) {
        print_message("cannot read %s: %s", path, strerror(errno));
        code = EXIT_INOUT;
    }
    free(line);
    (void)fclose(file);
    return code;
}

int skip_frames_take(const struct command *command, void *patterns, const char *path)
{
    (void)command;
    return skip_frames_read(path, patterns);
}

void skip_frames_free(const char **patterns)
{
    for (size_t i = 0; patterns && patterns[i]; i++)
        free((char *)patterns[i]);
    free((void *)patterns);
}
