/*
 * trail doctor: what this machine and a program permit `trail record` to do. machine.c checks the
 * machine, program.c whether the program can be recorded, debug_info.c what its stacks will
 * contain.
 */
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attach.h"
#include "base/error.h"
#include "base/text.h"
#include "commands/machine.h"
#include "inspect/debug_info.h"
#include "inspect/preload_path.h"
#include "inspect/program.h"
#include "ui/cli.h"
#include "ui/facts.h"

struct request {
    bool json;
    unsigned long pid; /* 0: none */
};

static const struct option rows[] = {
    {'j', "json", NULL, "one JSON object", TO_FLAG(struct request, json)},
    {'p', "pid", "PID", "whether 'trail record -p PID' can record this process",
     TO_NUMBER(struct request, pid), .least = 1, .most = INT32_MAX, .expects = "a process ID"},
    {0},
};

/* MARK: The system's packages */

/* Reads the value of a key in os-release(5), without quotes; "" if it is missing. */
static void os_release(const char *key, char *value, size_t size)
{
    char line[512];
    size_t length = strlen(key);
    FILE *file = fopen("/etc/os-release", "re");
    *value = '\0';
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0 && line[length] == '=') {
            const char *text = line + length + 1 + (line[length + 1] == '"');
            (void)snprintf(value, size, "%.*s", (int)strcspn(text, "\"\n"), text);
        }
    if (file)
        (void)fclose(file);
}

/* Returns the archive of Debian's packages with debug information. */
static void archive_of_symbols(char *text, size_t size)
{
    char id[64], codename[64];
    os_release("ID", id, sizeof id);
    os_release("VERSION_CODENAME", codename, sizeof codename);
    if (strcmp(id, "debian") == 0 && *codename)
        (void)snprintf(text, size, "deb http://deb.debian.org/debian-debug %s-debug main",
                       codename);
    else if (strcmp(id, "ubuntu") == 0 && *codename)
        (void)snprintf(text, size, "deb http://ddebs.ubuntu.com %s main", codename);
    else
        (void)snprintf(text, size, "the archive of debug packages of your system");
}

/* Writes how to get the debug information of a file into `text`. */
static const char *how_to_get(struct facts *facts, const char *path, char *text, size_t size)
{
    char package[128], archive[160];
    errno = 0;
    if (!debug_info_package(path, package, sizeof package))
        (void)snprintf(text, size, "build it with -g, and do not strip it");
    else if (strcmp(package, "libc6") == 0)
        (void)snprintf(text, size, "apt install libc6-dbg");
    else {
        archive_of_symbols(archive, sizeof archive);
        (void)snprintf(text, size, "apt install %s-dbgsym, from the debian-debug archive (%s)",
                       package, archive);
    }
    facts->no_memory |= errno == ENOMEM;
    return text;
}

/* MARK: Names and stacks */

static void add_names(struct facts *facts, const char *name, const char *path,
                      const struct debug_info *info)
{
    char todo[512];
    if (debug_info_has_lines(info))
        fact(facts, FACT_OK, name, NULL, "functions and lines, from %s",
             info->dwarf ? path : info->file);
    else if (debug_info_has_names(info))
        fact(facts, FACT_NOTE, name, how_to_get(facts, path, todo, sizeof todo),
             "%s has names of functions, but no lines", path);
    else
        fact(facts, FACT_NOTE, name, how_to_get(facts, path, todo, sizeof todo),
             "%s is stripped: no function names beyond exported ones", path);
}

static void add_frames(struct facts *facts, const struct debug_info *info)
{
    static const char name[] = "frame pointers", todo[] = "build it with -fno-omit-frame-pointer";
    unsigned framed = info->framed, functions = info->functions;
    switch (info->frames) {
    case FRAMES_YES:
        fact(facts, FACT_OK, name, NULL, "yes: %u of %u functions examined have one", framed,
             functions);
        break;
    case FRAMES_NO:
        fact(facts, FACT_NOTE, name, todo,
             "no: %u of %u functions examined have one; stacks are unwound by its tables, which "
             "costs more",
             framed, functions);
        break;
    case FRAMES_MIXED:
        fact(facts, FACT_NOTE, name, todo,
             "mixed: %u of %u functions examined have one; stacks are unwound by its tables, "
             "which costs more",
             framed, functions);
        break;
    default:
        fact(facts, FACT_OK, name, NULL, "not known: too few functions to judge by (%u)",
             functions);
    }
}

/* Adds the C library of this command: usually the program uses the same. */
static void add_libc_names(struct facts *facts)
{
    Dl_info place;
    struct debug_info info;
    const char *(*known)(void) = gnu_get_libc_version;
    void *address;
    memcpy(&address, &known, sizeof address);
    if (!dladdr(address, &place) || !place.dli_fname)
        return;
    debug_info_look(&info, place.dli_fname);
    facts->no_memory |= info.no_memory;
    if (info.looked)
        add_names(facts, "names in libc", place.dli_fname, &info);
}

/* MARK: The program */

static void add_file(struct facts *facts, const struct program *program)
{
    if (program->scripts > 0 && strcmp(program->runs, program->script) != 0)
        fact(facts, FACT_OK, "program", NULL, "%s, a script: what runs is %s", program->path,
             program->runs);
    else if (*program->path)
        fact(facts, FACT_OK, "program", NULL, "%s", program->path);
}

static void add_sanitizers(struct facts *facts, const struct program *program)
{
    if (*program->first)
        fact(facts, FACT_NOTE, "sanitizers", NULL,
             "AddressSanitizer (%s), which must be loaded first: trail record puts it before the "
             "recorder in LD_PRELOAD",
             program->first);
    else if (program->sanitizers)
        fact(facts, FACT_NOTE, "sanitizers", NULL,
             "%s is in it: it answers some calls before the recorder sees them, and slows the "
             "program down",
             program->sanitizers & PROGRAM_ASAN   ? "AddressSanitizer"
             : program->sanitizers & PROGRAM_TSAN ? "ThreadSanitizer"
             : program->sanitizers & PROGRAM_MSAN ? "MemorySanitizer"
                                                  : "LeakSanitizer");
}

/* gcc's OpenMP library has no tools interface. */
static void add_openmp(struct facts *facts, const struct program *program)
{
    char libomp[PATH_MAX];
    if (!*program->openmp)
        return;
    if (strncmp(program->openmp, "libgomp", 7) != 0)
        fact(facts, FACT_OK, "OpenMP", NULL,
             "it uses %s: parallel regions, tasks, barriers and locks are recorded",
             program->openmp);
    else
        fact(facts, FACT_NOTE, "OpenMP",
             preload_libomp(libomp, sizeof libomp) ? "trail record --openmp"
                                                   : "apt install libomp5; trail record --openmp",
             "it uses %s, which does not report its work; LLVM's library, which can replace it, "
             "does",
             program->openmp);
}

static void add_java(struct facts *facts, const struct program *program)
{
    if (program->is_java)
        fact(facts, FACT_NOTE, "Java",
             "java -XX:+PreserveFramePointer, and 'jcmd PID Compiler.perfmap' while it is recorded",
             "it is a Java virtual machine: Java's monitors and locks appear as its condition "
             "variables, without names and holders; its methods are named only on request");
}

static void add_program(struct facts *facts, const struct program *program)
{
    struct debug_info info;
    const char *refusal = program_refusal(program);
    add_file(facts, program);
    facts->no_memory |= program->verdict == PROGRAM_NO_MEMORY;
    if (refusal) {
        fact(facts, FACT_PROBLEM, "recording", NULL, "%s", refusal);
        return;
    }
    if (program->unread) {
        fact(facts, FACT_NOTE, "recording", NULL,
             "%s may be executed but not read: its kind is unknown", program->runs);
        return;
    }
    fact(facts, FACT_OK, "recording", NULL, "dynamically linked with glibc: it can be recorded");
    add_sanitizers(facts, program);
    add_openmp(facts, program);
    add_java(facts, program);
    debug_info_look(&info, program->runs);
    facts->no_memory |= info.no_memory;
    if (!info.looked)
        return;
    add_names(facts, "names", program->runs, &info);
    add_frames(facts, &info);
    add_libc_names(facts);
}

/* MARK: The result */

static void add_result(const struct facts *facts, const char *word)
{
    show_plain(text_from(word ? word : "programs"));
    if (facts->problems > 0)
        puts(" cannot be recorded: see 'problem' above");
    else if (facts->notes > 0)
        printf(" can be recorded; %u note%s above: how to record more\n", facts->notes,
               facts->notes == 1 ? "" : "s");
    else
        puts(" can be recorded");
}

static int end_facts(struct facts *facts, bool as_json, const char *word)
{
    if (as_json) {
        json_bool(&facts->json, "recordable", facts->problems == 0);
        json_close(&facts->json, '}');
        putchar('\n');
    } else {
        add_result(facts, word);
    }
    if (facts->no_memory)
        return exit_no_memory();
    return facts->problems == 0 ? EXIT_GOOD : EXIT_USAGE;
}

/* MARK: A process */

/* Does not touch the process. */
static void add_process(struct facts *facts, pid_t pid)
{
    struct preload preload;
    struct attach attach;
    trail_error err = no_error();
    if (!preload_path(&preload))
        fact(facts, FACT_PROBLEM, "recording", NULL, "%s", preload.wrong);
    else if (!attach_look(&attach, pid, preload.path, &err))
        fact(facts, FACT_PROBLEM, "recording", NULL, "%s", err.message);
    else
        fact(facts, FACT_OK, "recording", NULL, "process %d can be recorded", (int)pid);
}

static int examine_process(pid_t pid, bool as_json)
{
    struct facts facts;
    char word[32];
    (void)snprintf(word, sizeof word, "process %d", (int)pid);
    facts_begin(&facts, as_json);
    if (as_json) {
        json_open(&facts.json, NULL, '{');
        json_signed(&facts.json, "pid", pid);
    }
    facts_open(&facts, "machine");
    machine_facts(&facts);
    facts_close(&facts);
    facts_open(&facts, "process");
    add_process(&facts, pid);
    facts_close(&facts);
    return end_facts(&facts, as_json, word);
}

/* MARK: Run */

static void json_begin(struct json *json, const struct program *program)
{
    json_open(json, NULL, '{');
    if (!program)
        return;
    json_string(json, "word", program->word);
    json_string(json, "path", program->path);
    json_string(json, "runs", program->runs);
    json_string(json, "verdict", program_verdict_name(program->verdict));
    json_signed(json, "exit_status", program_exit_code(program));
    if (*program->first)
        json_string(json, "preload_first", program->first);
}

static int examine(const struct program *program, bool as_json)
{
    struct facts facts;
    facts_begin(&facts, as_json);
    if (as_json)
        json_begin(&facts.json, program);
    facts_open(&facts, "machine");
    machine_facts(&facts);
    facts_close(&facts);
    if (program) {
        facts_open(&facts, "program");
        add_program(&facts, program);
        facts_close(&facts);
    }
    return end_facts(&facts, as_json, program ? program->word : NULL);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct options options;
    struct request request = {0};
    int code = options_each(&options, command, argc, argv, NULL, &request);
    if (code != EXIT_GOOD)
        return code;
    if (options.word_count > 1)
        return usage_error(command, "one program at a time, without its arguments");
    if (request.pid && options.word_count > 0)
        return usage_error(command, "a process or a program, not both");
    if (request.pid)
        return examine_process((pid_t)request.pid, request.json);
    if (options.word_count == 0)
        return examine(NULL, request.json);
    struct program *program = malloc(sizeof *program);
    if (!program)
        return print_output_error("the facts", ENOMEM);
    program_inspect(program, options.words[0]);
    code = examine(program, request.json);
    free(program);
    return code;
}

const struct command command_doctor = {
    COMMAND_ROW(doctor),
    .synopsis = "[options] [PROGRAM | -p PID]",
    .details = "One line per fact: 'ok', 'note' (it works; how to record more), or 'problem' "
               "(nothing can be recorded). PROGRAM is searched for as by 'trail record -- "
               "PROGRAM', and is not started. Exit status: 0 it can be recorded, 2 it cannot.",
    .examples = "  trail doctor\n"
                "  trail doctor ./server\n"
                "  trail doctor -p $(pidof server)\n"
                "  trail doctor --json pigz | jq '.program[] | select(.state != \"ok\")'",
    .wrapped = true,
    .no_input = true,
};
