/*
 * Finds out, before anything is started, which program a command's first word runs, and whether the
 * recorder can be loaded into it. Scripts are followed to their interpreter as the kernel, execvp
 * and env would do; program_elf.c examines that program's file.
 *
 * No file is trusted: only regular files are opened, none is mapped, and sizes in headers are
 * checked before anything is read. A program that cannot be examined (executable, but not readable)
 * is not refused.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether a program can be recorded: verdict, short name in JSON, exit status of the refusal. */
#define PROGRAM_VERDICTS(X)                                                                        \
    X(RECORDABLE, "recordable", 0)                                                                 \
    X(NOT_FOUND, "not-found", 127)           /* exit status as in shells */                        \
    X(NOT_EXECUTABLE, "not-executable", 126) /* likewise */                                        \
    X(FOREIGN, "another-architecture", 2)                                                          \
    X(GO, "go", 2)                                                                                 \
    X(STATIC, "static", 2)                                                                         \
    X(OTHER_LIBC, "not-glibc", 2)                                                                  \
    X(NO_MEMORY, "no-memory", 3)     /* not examined */                                            \
    X(PRIVILEGED, "privileged", 2)   /* setuid, setgid or file capabilities */                     \
    X(ENVIRONMENT, "environment", 2) /* a #! line with env that drops LD_PRELOAD */

enum program_verdict {
#define X(name, word, code) PROGRAM_##name,
    PROGRAM_VERDICTS(X)
#undef X
};

/* Run-time libraries of sanitizers. */
enum { PROGRAM_ASAN = 1 << 0, PROGRAM_TSAN = 1 << 1, PROGRAM_MSAN = 1 << 2, PROGRAM_LSAN = 1 << 3 };

/* Owns no memory. */
struct program {
    const char *word;      /* belongs to the caller */
    char path[PATH_MAX];   /* the file that execve starts; "": not found */
    char runs[PATH_MAX];   /* the ELF file that runs: path, or a script's interpreter */
    char script[PATH_MAX]; /* the last script followed; "": path is no script */
    unsigned scripts;      /* number of scripts followed */
    bool unread;           /* executable but not readable: the members below are unknown */
    bool looked;           /* it was read, and is a program for this machine */

    char loader[256];    /* its dynamic loader; "": none */
    unsigned sanitizers; /* bits PROGRAM_ASAN ... */
    char first[256];     /* library that must precede the recorder in LD_PRELOAD; "": none */
    char openmp[256];    /* the OpenMP library that it needs; "": none */
    bool is_java;        /* it loads a Java virtual machine */
    char go_version[64]; /* of a Go program; "": not known */

    enum program_verdict verdict;
    char refusal[3 * PATH_MAX]; /* what, why, and what to do instead; "": it can be recorded */
};

/* Examines the program that the command `word` would start from here. */
void program_inspect(struct program *program, const char *word);

/* Why it cannot be recorded, one line without a newline; NULL if it can. */
const char *program_refusal(const struct program *program);

/* The exit status of the refusal; 0: none. */
int program_exit_code(const struct program *program);

/* The verdict's short name. */
const char *program_verdict_name(enum program_verdict verdict);

/* For program_elf.c: sets verdict and refusal, unless they are set already. */
void program_refuse(struct program *program, enum program_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The program's name in messages, written to buf: "WORD", or "WORD (a script that RUNS runs)". */
const char *program_title(const struct program *program, char *buf, size_t size);
