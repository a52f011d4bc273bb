/*
 * What the first word of a command line stands for, and whether the recorder can be loaded into it:
 * looked at before anything is started. A script is followed to the program that runs it, as the
 * kernel, execvp and env would; that program's file is looked into by program_elf.c.
 *
 * Every file is taken for hostile: only regular files are opened, none is mapped, and what its
 * headers claim is bounded before it is read. What cannot be told (a file that may be run but not
 * read) is not refused.
 */
#ifndef TRAIL_INSPECT_PROGRAM_H
#define TRAIL_INSPECT_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* What a program is to the recorder, the short name in JSON, and the exit status of a refusal. */
#define PROGRAM_VERDICTS(X)                                                                        \
    X(RECORDABLE, "recordable", 0)                                                                 \
    X(NOT_FOUND, "not-found", 127)           /* as a shell says it */                              \
    X(NOT_EXECUTABLE, "not-executable", 126) /* likewise */                                        \
    X(FOREIGN, "another-architecture", 2)                                                          \
    X(GO, "go", 2)                                                                                 \
    X(JAVA, "java", 2)                                                                             \
    X(STATIC, "static", 2)                                                                         \
    X(OTHER_LIBC, "not-glibc", 2)                                                                  \
    X(PRIVILEGED, "privileged", 2)   /* setuid, setgid or file capabilities */                     \
    X(ENVIRONMENT, "environment", 2) /* a #! line with env that drops LD_PRELOAD */

enum program_verdict {
#define X(name, word, code) PROGRAM_##name,
    PROGRAM_VERDICTS(X)
#undef X
};

/* Run-time libraries of sanitizers. */
enum { PROGRAM_ASAN = 1 << 0, PROGRAM_TSAN = 1 << 1, PROGRAM_MSAN = 1 << 2, PROGRAM_LSAN = 1 << 3 };

/* Needs no freeing. */
struct program {
    const char *word;      /* the caller's */
    char path[PATH_MAX];   /* what execve starts; "": nothing was found */
    char runs[PATH_MAX];   /* the file of the program that runs: path, or a script's interpreter */
    char script[PATH_MAX]; /* the last script on the way there; "": path is no script */
    unsigned scripts;      /* how many scripts were passed */
    bool unread;           /* it may be run but not read: all of the following is not known */
    bool looked;           /* it was read, and is a program of this machine */

    char loader[256];    /* the dynamic loader that it asks for; "": none */
    unsigned sanitizers; /* bits */
    char first[256];     /* what must stand before the recorder in LD_PRELOAD; "": nothing */
    char openmp[256];    /* the OpenMP run-time library that it needs; "": none */
    char go_version[64]; /* of a Go program, if it says so */

    enum program_verdict verdict;
    char refusal[3 * PATH_MAX]; /* what, why, and what to use instead; "": it can be recorded */
};

/* Looks at what the command `word` would start, from here and now. */
void program_inspect(struct program *program, const char *word);

/* Why it cannot be recorded, in one line without a newline; NULL: it can. */
const char *program_refusal(const struct program *program);

/* The exit status that goes with the refusal; 0: none. */
int program_exit_code(const struct program *program);

/* The verdict's short name. */
const char *program_verdict_name(enum program_verdict verdict);

/* For program_elf.c: sets verdict and refusal, the first of them only. */
void program_refuse(struct program *program, enum program_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What the messages call it: "WORD", or "WORD (a script that RUNS runs)". Valid until the next. */
const char *program_title(const struct program *program, char *buf, size_t size);

#endif
