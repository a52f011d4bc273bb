#include "inspect/program.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "inspect/program_elf.h"

#define SCRIPT_LINE  256 /* bytes of a file that the kernel reads to find out its type */
#define MOST_SCRIPTS 5   /* the kernel's limit of nested interpreters */
#define MOST_ENVS    4   /* scripts run through env, each of which restarts that count */

/* MARK: Verdict */

const char *program_verdict_name(enum program_verdict verdict)
{
    switch (verdict) {
#define X(name, word, code)                                                                        \
    case PROGRAM_##name:                                                                           \
        return word;
        PROGRAM_VERDICTS(X)
#undef X
    }
    return "?";
}

int program_exit_code(const struct program *program)
{
    switch (program->verdict) {
#define X(name, word, code)                                                                        \
    case PROGRAM_##name:                                                                           \
        return code;
        PROGRAM_VERDICTS(X)
#undef X
    }
    return 2;
}

const char *program_refusal(const struct program *program)
{
    return program->verdict == PROGRAM_RECORDABLE ? NULL : program->refusal;
}

void program_refuse(struct program *program, enum program_verdict verdict, const char *format, ...)
{
    va_list args;
    if (program->verdict != PROGRAM_RECORDABLE)
        return;
    program->verdict = verdict;
    va_start(args, format);
    (void)vsnprintf(program->refusal, sizeof program->refusal, format, args);
    va_end(args);
}

const char *program_title(const struct program *program, char *buf, size_t size)
{
    if (program->scripts > 0)
        (void)snprintf(buf, size, "%s (a script that %s runs)", program->word, program->runs);
    else
        (void)snprintf(buf, size, "%s", program->word);
    return buf;
}

/* MARK: Finding the file */

/* Returns 0, or the errno with which execve would refuse the file before reading it. */
static int executable(const char *path)
{
    struct stat file;
    if (stat(path, &file) < 0)
        return errno;
    if (S_ISDIR(file.st_mode))
        return EISDIR;
    if (!S_ISREG(file.st_mode) || access(path, X_OK) < 0)
        return EACCES;
    return 0;
}

/* Joins folder and name; folder "" is the current one. Returns false if the result is too long. */
static bool join(char *path, const char *folder, size_t length, const char *name)
{
    size_t size = strlen(name) + 1;
    if (length >= PATH_MAX || size >= PATH_MAX - length)
        return false;
    memcpy(path, folder, length);
    if (length > 0)
        path[length++] = '/';
    memcpy(path + length, name, size);
    return true;
}

/*
 * Finds the file that execvp would run. Returns 0, or an errno: ENOENT if there is none, EACCES if
 * those found may not be executed.
 */
static int find(const char *name, char *path)
{
    if (strchr(name, '/')) {
        *path = '\0';
        return join(path, "", 0, name) ? executable(path) : ENAMETOOLONG;
    }
    const char *folders = getenv("PATH");
    if (!folders)
        folders = "/bin:/usr/bin";
    int wrong = ENOENT;
    for (const char *at = folders; *name;) {
        size_t length = strcspn(at, ":");
        int why = join(path, at, length, name) ? executable(path) : ENAMETOOLONG;
        if (why == 0)
            return 0;
        if (why == EACCES)
            wrong = EACCES;
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    *path = '\0';
    return wrong;
}

static void refuse_word(struct program *program, int why)
{
    const char *word = program->word;
    if (strchr(word, '/')) {
        program_refuse(program,
                       why == ENOENT || why == ENOTDIR ? PROGRAM_NOT_FOUND : PROGRAM_NOT_EXECUTABLE,
                       "%s: %s%s", word, strerror(why),
                       why == EACCES ? ": is it a program? chmod +x makes it one" : "");
        return;
    }
    if (why == EACCES) {
        program_refuse(program, PROGRAM_NOT_EXECUTABLE,
                       "%s: in a folder of PATH, but %s: is it a program? chmod +x makes it one",
                       word, strerror(why));
        return;
    }
    char here[PATH_MAX];
    bool is_here = *word && join(here, ".", 1, word) && executable(here) == 0;
    program_refuse(program, PROGRAM_NOT_FOUND, "%s: command not found in the folders of PATH%s%s",
                   *word ? word : "''", is_here ? "; the file in this folder is " : "",
                   is_here ? here : "");
}

/* MARK: Scripts */

/* Whether a shell would run the file without a #! line: no NUL in its first line. */
static bool is_text(const char *head, size_t size)
{
    const char *end = memchr(head, '\n', size);
    return !memchr(head, '\0', end ? (size_t)(end - head) : size);
}

/* Splits "#! interpreter argument" in place, as the kernel does. Returns false if malformed. */
static bool split_line(char *head, ssize_t size, char **interpreter, char **argument)
{
    char *end = memchr(head, '\n', (size_t)size);
    bool whole = end || size < SCRIPT_LINE;
    if (!end)
        end = head + size;
    *end = '\0';
    char *at = head + 2;
    at += strspn(at, " \t");
    *interpreter = at;
    at += strcspn(at, " \t");
    if (*at == '\0' && !whole)
        return false; /* the path may be truncated */
    if (*at != '\0')
        *at++ = '\0';
    at += strspn(at, " \t");
    for (char *last = at + strlen(at); last > at && (last[-1] == ' ' || last[-1] == '\t');)
        *--last = '\0';
    *argument = at;
    return **interpreter != '\0';
}

/* The effect of env's first arguments. */
struct env_line {
    const char *program; /* NULL: not known */
    bool drops;          /* LD_PRELOAD is removed from the environment */
};

/* The next word of a line that env -S splits; NULL at its end. */
static char *next_word(char **at)
{
    char *word = *at + strspn(*at, " \t");
    if (*word == '\0')
        return NULL;
    *at = word + strcspn(word, " \t");
    if (**at != '\0')
        *(*at)++ = '\0';
    return word;
}

static bool is_assignment(const char *word)
{
    return strchr(word, '=') != NULL;
}

/* Interprets one word of env's arguments. Returns true if it is the program. */
static bool env_word(struct env_line *line, char *word, char **rest)
{
    if (strcmp(word, "-i") == 0 || strcmp(word, "-") == 0 ||
        strcmp(word, "--ignore-environment") == 0) {
        line->drops = true;
    } else if (strcmp(word, "-u") == 0) {
        const char *name = next_word(rest);
        line->drops = line->drops || (name && strcmp(name, "LD_PRELOAD") == 0);
    } else if (strcmp(word, "-uLD_PRELOAD") == 0 || strcmp(word, "--unset=LD_PRELOAD") == 0 ||
               strncmp(word, "LD_PRELOAD=", 11) == 0) {
        line->drops = true;
    } else if (word[0] != '-' && !is_assignment(word)) {
        line->program = word;
        return true;
    }
    return false;
}

static struct env_line read_env(char *argument)
{
    struct env_line line = {0};
    static const char *const splits[] = {"-S", "-vS", "--split-string="};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        size_t length = strlen(splits[i]);
        if (strncmp(argument, splits[i], length) != 0)
            continue;
        char *rest = argument + length;
        if (strpbrk(rest, "\"'\\$#"))
            return line;
        for (char *word; (word = next_word(&rest)) != NULL;)
            if (env_word(&line, word, &rest))
                break;
        return line;
    }
    /* Without -S the whole argument is one word. */
    char *none = argument + strlen(argument);
    if (*argument)
        (void)env_word(&line, argument, &none);
    return line;
}

/* The interpreter of the last script cannot be started. */
static bool refuse_script(struct program *program, const char *interpreter, int why)
{
    program_refuse(program,
                   why == ENOENT || why == ENOTDIR ? PROGRAM_NOT_FOUND : PROGRAM_NOT_EXECUTABLE,
                   "%s: the interpreter in the #! line of %s, '%s': %s", program->word,
                   program->script, interpreter, strerror(why));
    return false;
}

/* Continues with the program that env would start. Returns false if that is refused or unknown. */
static bool follow_env(struct program *program, char *argument)
{
    struct env_line line = read_env(argument);
    if (line.drops) {
        program_refuse(program, PROGRAM_ENVIRONMENT,
                       "%s: the #! line of %s removes LD_PRELOAD (env -i or the like), which loads "
                       "the recorder; start its interpreter yourself: trail record -- "
                       "INTERPRETER %s",
                       program->word, program->script, program->script);
        return false;
    }
    if (!line.program)
        return false;
    char path[PATH_MAX];
    int why = find(line.program, path);
    if (why != 0)
        return refuse_script(program, line.program, why);
    (void)snprintf(program->runs, sizeof program->runs, "%s", path);
    return true;
}

/* Continues with the interpreter of the script program->runs. Returns false if refused. */
static bool follow_line(struct program *program, char *head, ssize_t size,
                        char argument[SCRIPT_LINE + 1])
{
    char *interpreter, *more;
    (void)snprintf(program->script, sizeof program->script, "%s", program->runs);
    program->scripts++;
    if (!split_line(head, size, &interpreter, &more))
        return refuse_script(program, "", ENOEXEC);
    int why = executable(interpreter);
    if (why != 0)
        return refuse_script(program, interpreter, why);
    (void)snprintf(program->runs, sizeof program->runs, "%s", interpreter);
    (void)snprintf(argument, SCRIPT_LINE + 1, "%s", more);
    return true;
}

/* A text file without #! is run by the shell, as execvp and shells do. */
static bool follow_text(struct program *program, const char *head, size_t size)
{
    if (!is_text(head, size)) {
        program_refuse(program, PROGRAM_NOT_EXECUTABLE,
                       "%s: %s: neither an ELF program nor a script", program->word,
                       strerror(ENOEXEC));
        return false;
    }
    (void)snprintf(program->script, sizeof program->script, "%s", program->path);
    (void)snprintf(program->runs, sizeof program->runs, "/bin/sh");
    program->scripts++;
    return true;
}

/*
 * Follows scripts until program->runs is an ELF file. Returns its descriptor; -1 if the program is
 * refused or cannot be read.
 */
static int follow(struct program *program)
{
    char head[SCRIPT_LINE + 1], argument[SCRIPT_LINE + 1] = "";
    unsigned depth = 0, envs = 0;
    for (bool more = true; more;) {
        int fd = program_open(program->runs);
        if (fd < 0) {
            program->unread = true;
            return -1;
        }
        ssize_t size = file_read_at(fd, head, SCRIPT_LINE, 0);
        if (size >= 4 && memcmp(head, "\177ELF", 4) == 0) {
            bool env = depth > 0 && *argument && strcmp(path_name(program->runs), "env") == 0;
            if (!env || envs++ >= MOST_ENVS || !follow_env(program, argument))
                return fd;
            depth = 0;
            *argument = '\0';
            (void)close(fd);
            continue;
        }
        (void)close(fd);
        if (size < 0) {
            program->unread = true;
            return -1;
        }
        head[size] = '\0';
        if (size >= 2 && memcmp(head, "#!", 2) == 0) {
            more = depth++ < MOST_SCRIPTS || refuse_script(program, program->runs, ELOOP);
            more = more && follow_line(program, head, size, argument);
        } else {
            more = depth++ < MOST_SCRIPTS && follow_text(program, head, (size_t)size);
        }
    }
    return -1;
}

/* MARK: Privileges */

/* The privileges that a file gives on execution. */
struct gain {
    char what[64];    /* "": none */
    char instead[64]; /* how to get them beforehand */
};

static struct gain gain_of(const char *path)
{
    struct gain gain = {0};
    struct stat file;
    struct statvfs mount;
    if (stat(path, &file) < 0 || (statvfs(path, &mount) == 0 && (mount.f_flag & ST_NOSUID)))
        return gain;
    bool given = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
    unsigned user = file.st_uid, group = file.st_gid;
    if (given && (file.st_mode & S_ISUID) && user != getuid()) {
        (void)snprintf(gain.what, sizeof gain.what, "setuid to user %u", user);
        (void)snprintf(gain.instead, sizeof gain.instead, "as that user (sudo -u '#%u'", user);
    } else if (given && (file.st_mode & S_ISGID) && (file.st_mode & S_IXGRP) && group != getgid()) {
        (void)snprintf(gain.what, sizeof gain.what, "setgid to group %u", group);
        (void)snprintf(gain.instead, sizeof gain.instead, "as that group (sudo -g '#%u'", group);
    } else if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0) {
        (void)snprintf(gain.what, sizeof gain.what, "given capabilities (getcap shows them)");
        (void)snprintf(gain.instead, sizeof gain.instead, "as root (sudo");
    }
    return gain;
}

static bool starts_others(const char *path)
{
    static const char *const names[] = {"sudo", "su", "doas", "pkexec", "runuser"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path_name(path), names[i]) == 0)
            return true;
    return false;
}

static void check_privileges(struct program *program)
{
    char title[2 * PATH_MAX + 64];
    struct gain gain = gain_of(program->runs);
    if (*gain.what == '\0')
        return;
    (void)program_title(program, title, sizeof title);
    if (starts_others(program->runs))
        program_refuse(program, PROGRAM_PRIVILEGED,
                       "%s is %s: the loader then ignores LD_PRELOAD; put it in front instead: %s "
                       "trail record -- PROGRAM",
                       title, gain.what, path_name(program->runs));
    else
        program_refuse(program, PROGRAM_PRIVILEGED,
                       "%s is %s: the loader then ignores LD_PRELOAD; record it %s trail "
                       "record -- ...), or record a copy of the file, which has no such rights",
                       title, gain.what, gain.instead);
}

/* MARK: Inspection */

void program_inspect(struct program *program, const char *word)
{
    memset(program, 0, sizeof *program);
    program->word = word;
    int why = find(word, program->path);
    if (why != 0) {
        refuse_word(program, why);
        *program->path = '\0';
        return;
    }
    (void)snprintf(program->runs, sizeof program->runs, "%s", program->path);
    int fd = follow(program);
    if (program->verdict != PROGRAM_RECORDABLE) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    if (fd >= 0) {
        program_inspect_elf(program, fd);
        (void)close(fd);
    }
    check_privileges(program);
}
