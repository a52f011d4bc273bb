/*
 * trail env: prints the variables that let a program find the recorder where `trail record` cannot
 * start it: LD_PRELOAD, TRAIL_SHM, which names the shared memory of the waiting recorder, and for
 * OpenMP OMP_TOOL_LIBRARIES.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "inspect/preload_path.h"
#include "ui/cli.h"
#include "ui/follow_up.h"

enum { OPT_FOR = 1 };

struct env {
    const char *library; /* for LD_PRELOAD */
    const char *openmp;  /* for OMP_TOOL_LIBRARIES; "": none */
    const char *shm;     /* an absolute path */
    const char *output;
    bool heap;
    const struct form *form;
};

static const struct option rows[] = {
    {'f', "for", "FORM",
     "sh: lines for a shell (the default); systemd: lines for the [Service] of a unit; docker: "
     "options of docker run",
     TAKE(OPT_FOR), .values = "sh systemd docker"},
    {'s', "shm", "FILE",
     "the shared memory, a path in a file system in memory (/dev/shm/trail-NUMBER, a new one each "
     "time)",
     TO_TEXT(struct env, shm)},
    {'o', "output", "FILE", "where the recorder writes the trace (app.trace)",
     TO_TEXT(struct env, output)},
    {0, "heap", NULL, "also record malloc's heap", TO_FLAG(struct env, heap)},
    {0},
};

/* MARK: Forms */

/* Prints in single quotes, in which only a quote is special. */
static void put_quoted(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", to);
        else
            fputc(*text, to);
    fputc('\'', to);
}

static void put_sh(const struct env *env)
{
    fputs("export LD_PRELOAD=", stdout);
    put_quoted(stdout, env->library);
    fputs("${LD_PRELOAD:+:$LD_PRELOAD}\nexport TRAIL_SHM=path:", stdout);
    put_quoted(stdout, env->shm);
    putchar('\n');
    if (!*env->openmp)
        return;
    fputs("export OMP_TOOL_LIBRARIES=\"${OMP_TOOL_LIBRARIES:+$OMP_TOOL_LIBRARIES:}\"", stdout);
    put_quoted(stdout, env->openmp);
    putchar('\n');
}

/* Prints a quoted word for a systemd unit: %% is a percent sign, \ and " are escaped. */
static void put_unit(const char *name, const char *before, const char *text)
{
    printf("Environment=\"%s=%s", name, before);
    for (; *text; text++) {
        if (*text == '%')
            putchar('%');
        else if (*text == '\\' || *text == '"')
            putchar('\\');
        putchar(*text);
    }
    puts("\"");
}

static void put_systemd(const struct env *env)
{
    put_unit("LD_PRELOAD", "", env->library);
    put_unit("TRAIL_SHM", "path:", env->shm);
    if (*env->openmp)
        put_unit("OMP_TOOL_LIBRARIES", "", env->openmp);
}

static bool plain(const char *text)
{
    for (; *text; text++)
        if (!strchr("/._-+,@%~", *text) && !(*text >= '0' && *text <= '9') &&
            !((*text | 0x20) >= 'a' && (*text | 0x20) <= 'z'))
            return false;
    return true;
}

/* Prints one line of words without characters special to shells, for docker run $(trail env
 * ...). */
static void put_docker(const struct env *env)
{
    printf("-e LD_PRELOAD=%s -e TRAIL_SHM=path:%s -v %s:%s:ro -v %s:%s", env->library, env->shm,
           env->library, env->library, env->shm, env->shm);
    if (*env->openmp)
        printf(" -e OMP_TOOL_LIBRARIES=%s -v %s:%s:ro", env->openmp, env->openmp, env->openmp);
    putchar('\n');
}

struct form {
    const char *name;
    void (*put)(const struct env *env);
    const char *use;
};

static const struct form forms[] = {
    {"sh", put_sh, "then start the program: (eval \"$(trail env ...)\"; exec PROGRAM)"},
    {"systemd", put_systemd,
     "then put the lines below [Service] (systemctl edit UNIT), and start the unit"},
    {"docker", put_docker,
     "then: docker run $(trail env --for=docker ...) IMAGE; the image must have glibc, and the "
     "file must exist beforehand, or docker creates a folder in its place"},
};

#define FORMS (sizeof forms / sizeof *forms)

/* --for. */
static int find_form(void *context, int id, const char *word)
{
    struct env *env = context;
    const char *names[FORMS + 1] = {0};
    (void)id;
    for (size_t i = 0; i < FORMS; i++) {
        names[i] = forms[i].name;
        env->form = &forms[i];
        if (strcmp(word, names[i]) == 0)
            return EXIT_GOOD;
    }
    const char *nearest = nearest_word(word, names);
    return usage_error(&command_env, "unknown form '%s'%s%s%s", word,
                       nearest ? "; did you mean '" : "", nearest ? nearest : "",
                       nearest ? "'?" : ": sh, systemd or docker");
}

/* MARK: Run */

/* Instructions go to stderr: stdout is for a shell or a file. */
static void print_use(const struct env *env, const struct form *form)
{
    char shm[FOLLOW_UP_SIZE], output[FOLLOW_UP_SIZE];
    print_message("first, and as the same user: trail record --attach-shm=%s -o %s%s",
                  shell_word(env->shm, shm), shell_file(env->output, output),
                  env->heap ? " --heap" : "");
    print_message("%s", form->use);
}

static int check_shm(const struct command *command, const char *shm, const struct form *form)
{
    if (shm[0] != '/')
        return usage_error(
            command, "--shm=%s is not an absolute path: the program may run in another folder",
            shm);
    for (const char *c = shm; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return usage_error(command, "--shm: the path has control characters");
    if (form->put == put_docker && !plain(shm))
        return usage_error(
            command, "--shm=%s: docker and the shell accept only letters, digits and ._-+,@~", shm);
    return EXIT_GOOD;
}

/* Prints `env` without its library, and optionally without the shared memory. */
static int print_env(const struct command *command, const struct form *form, struct env env)
{
    char made[64];
    struct preload preload;
    uint64_t number = 0;
    if (!env.shm) {
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            return print_output_error("the name of the shared memory", errno);
        (void)snprintf(made, sizeof made, "/dev/shm/trail-%016" PRIx64, number);
        env.shm = made;
    }
    int code = check_shm(command, env.shm, form);
    if (code != EXIT_GOOD)
        return code;
    if (!(env.heap ? preload_path_with_heap(&preload) : preload_path(&preload))) {
        print_message("%s", preload.wrong);
        return EXIT_INOUT;
    }
    if (form->put == put_docker && !plain(preload.path))
        return usage_error(
            command,
            "the path of the recorder has characters that docker or the shell interprets: %s",
            preload.path);
    env.library = preload.path;
    env.openmp = preload.openmp;
    form->put(&env);
    print_use(&env, form);
    return EXIT_GOOD;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct options options;
    struct env env = {.output = "app.trace", .form = &forms[0]};
    int code = options_each(&options, command, argc, argv, find_form, &env);
    if (code != EXIT_GOOD)
        return code;
    if (options.word_count > 0)
        return usage_error(command, "no program is started here: '%s'", options.words[0]);
    return print_env(command, env.form, env);
}

const struct command command_env = {
    COMMAND_ROW(env),
    .synopsis = "[options]",
    .details = "For programs that 'trail record' cannot start: a systemd unit, a container's entry "
               "point. LD_PRELOAD names the recorder's library, and TRAIL_SHM the shared memory of "
               "a recorder that waits for them. The command that starts this recorder is printed "
               "on standard error; start it first.",
    .examples = "  (eval \"$(trail env --shm=/dev/shm/trail-server)\"; exec ./server)\n"
                "  trail env --for=systemd --shm=/dev/shm/trail-server\n"
                "  docker run $(trail env --for=docker --shm=/dev/shm/trail-server) image",
    .no_input = true,
};
