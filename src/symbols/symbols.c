/* Symbols of a file, as the process that reads it answers: see symbols.h. */
#include "symbols/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/idmap.h"
#include "base/intern.h"
#include "symbols/guards.h"
#include "symbols/message.h"
#include "symbols/named_files.h"
#include "symbols/symbol_process.h"

/*
 * The time for the questions about a file, unless TRAIL_SYMBOLS_SECONDS sets it, and what each
 * question adds to what is left of it: answers to many take long on a busy machine.
 */
#define SECONDS     60
#define QUESTION_NS INT64_C(100000000)

/* What is known of an address. */
struct answer {
    size_t count;
    union {
        trail_symbol frames[SYMBOLS_FRAMES];
        struct guard guards[GUARDS_MOST];
        struct {
            const char *name;
            uint64_t offset;
        } object;
    };
};

struct symbols {
    struct elf_symbols *here; /* NULL: the process reads it, and all below is used */
    struct symbol_process *process;
    struct symbol_process *own; /* NULL: the process is shared */
    char *path, *wanted;
    enum symbols_detail detail;
    bool has_lines;
    bool lost;                /* reading it failed */
    uint64_t start;           /* symbol_process_start, when the file was opened */
    uint64_t file;            /* its number there */
    int64_t most_ns, left_ns; /* for questions */
    struct message question, answer;
    struct intern texts; /* all that were handed out */
    /* By address: threads are often at the same places. */
    struct idmap frames, guards, objects;
    struct arena answers;
    struct answer last; /* if out of memory, or none */
};

/* MARK: Asking */

/* Returns false, with *err set unless it is NULL. */
static bool lose(struct symbols *symbols, const char *problem, trail_error *err)
{
    symbols->lost = true;
    named_files_refuse(symbols->path, problem);
    (void)error_set(err, TRAIL_IO, "%s", problem);
    return false;
}

/*
 * Notes the file that the process refused, with which every answer ends. Returns false if the
 * answer is not valid, with *err set unless it is NULL.
 */
static bool end_answer(struct symbols *symbols, trail_error *err)
{
    char problem[128], path[PATH_MAX];
    trail_string why = message_text(&symbols->answer), which = message_text(&symbols->answer);
    if (symbols->answer.failed) {
        symbol_process_stop(symbols->process);
        return lose(symbols, "the process that read it gave no valid answer", err);
    }
    (void)snprintf(problem, sizeof problem, "%.*s", (int)why.size, why.data);
    (void)snprintf(path, sizeof path, "%.*s", (int)which.size, which.data);
    if (*problem)
        named_files_refuse(path, problem);
    return true;
}

static bool ask(struct symbols *symbols, trail_error *err)
{
    symbols->left_ns += QUESTION_NS;
    if (symbols->left_ns > symbols->most_ns)
        symbols->left_ns = symbols->most_ns;
    const char *problem = symbol_process_ask(symbols->process, &symbols->question, &symbols->answer,
                                             &symbols->left_ns);
    return !problem || lose(symbols, problem, err);
}

/* Opens the file in the process. Returns false with *err set. */
static bool open_file(struct symbols *symbols, trail_error *err)
{
    message_clear(&symbols->question);
    message_put_number(&symbols->question, QUESTION_OPEN);
    message_put_word(&symbols->question, symbols->path);
    message_put_word(&symbols->question, symbols->wanted);
    message_put_number(&symbols->question, symbols->detail);
    symbols->start = symbol_process_start(symbols->process);
    if (symbols->start == 0)
        return lose(symbols, "cannot start a process to read it", err);
    if (!ask(symbols, err))
        return false;
    uint64_t code = message_number(&symbols->answer);
    trail_string message = message_text(&symbols->answer);
    symbols->has_lines = message_number(&symbols->answer) != 0;
    symbols->file = message_number(&symbols->answer);
    if (code != TRAIL_OK)
        (void)error_set(err,
                        code == TRAIL_INCONSISTENT || code == TRAIL_NO_MEMORY ? (trail_code)code
                                                                              : TRAIL_IO,
                        "%.*s", (int)message.size, message.data);
    return end_answer(symbols, err) && code == TRAIL_OK;
}

/*
 * Asks about an address; the answer follows in symbols->answer. If another file has ended the
 * process since, this one is opened again.
 */
static bool ask_about(struct symbols *symbols, enum question what, uint64_t address)
{
    trail_error err;
    if (symbols->lost)
        return false;
    if (symbols->start != symbol_process_start(symbols->process) && !open_file(symbols, &err))
        return lose(symbols, err.message, NULL);
    message_clear(&symbols->question);
    message_put_number(&symbols->question, what);
    message_put_number(&symbols->question, symbols->file);
    message_put_number(&symbols->question, address);
    return ask(symbols, NULL);
}

/* Returns the next text of the answer, NUL-terminated, as long as the struct lives; "" if out of
 * memory. */
static trail_string keep_text(struct symbols *symbols)
{
    trail_string text = message_text(&symbols->answer);
    const char *kept = text.size > 0 ? intern_text(&symbols->texts, text.data, text.size) : NULL;
    return kept ? (trail_string){kept, text.size} : (trail_string){"", 0};
}

/* MARK: Interface */

struct symbols *symbols_open(struct symbol_process *process, const char *path, const char *wanted,
                             enum symbols_detail detail, trail_error *err)
{
    struct symbols *symbols = calloc(1, sizeof *symbols);
    const char *seconds = getenv("TRAIL_SYMBOLS_SECONDS");
    if (!symbols) {
        (void)error_no_memory(err);
        return NULL;
    }
    symbols->own = process ? NULL : symbol_process_open();
    symbols->process = process ? process : symbols->own;
    symbols->path = strdup(path);
    symbols->wanted = strdup(wanted ? wanted : "");
    symbols->detail = detail;
    symbols->most_ns = symbols->left_ns =
        (seconds ? strtol(seconds, NULL, 10) : SECONDS) * 1000000000L;
    if (!symbols->process || !symbols->path || !symbols->wanted)
        (void)error_no_memory(err);
    else if (open_file(symbols, err))
        return symbols;
    symbols_close(symbols);
    return NULL;
}

struct symbols *symbols_open_here(const char *path, const char *wanted, enum symbols_detail detail,
                                  trail_error *err)
{
    struct symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols) {
        (void)error_no_memory(err);
        return NULL;
    }
    symbols->here = elf_symbols_open(path, wanted, detail, err);
    if (symbols->here)
        return symbols;
    free(symbols);
    return NULL;
}

void symbols_close(struct symbols *symbols)
{
    if (!symbols)
        return;
    elf_symbols_close(symbols->here);
    symbol_process_close(symbols->own);
    message_free(&symbols->question);
    message_free(&symbols->answer);
    intern_free(&symbols->texts);
    idmap_free(&symbols->frames);
    idmap_free(&symbols->guards);
    idmap_free(&symbols->objects);
    arena_free(&symbols->answers);
    free(symbols->path);
    free(symbols->wanted);
    free(symbols);
}

bool symbols_have_lines(const struct symbols *symbols)
{
    return symbols->here ? elf_symbols_have_lines(symbols->here) : symbols->has_lines;
}

/* Reads an answer into the last one. Returns its size, and its number of items in *count. */
typedef size_t read_answer(struct symbols *symbols, struct answer *last, uint64_t *count);

/* Returns the answer to a question about an address, and keeps it; without items if there is
 * none. */
static const struct answer *answer_to(struct symbols *symbols, enum question question,
                                      struct idmap *known, uint64_t address, read_answer *read)
{
    const struct answer *answer = idmap_find(known, address);
    struct answer *last = &symbols->last;
    uint64_t count;
    if (answer)
        return answer;
    last->count = 0;
    if (!ask_about(symbols, question, address))
        return last;
    size_t size = read(symbols, last, &count);
    if (!end_answer(symbols, NULL))
        return last;
    last->count = count;
    size += offsetof(struct answer, frames);
    struct answer *kept = arena_alloc(&symbols->answers, size);
    if (!kept)
        return last;
    memcpy(kept, last, size);
    (void)idmap_put(known, address, kept);
    return kept;
}

static size_t read_frames(struct symbols *symbols, struct answer *last, uint64_t *count)
{
    *count = message_number(&symbols->answer);
    symbols->answer.failed |= *count > SYMBOLS_FRAMES;
    for (size_t i = 0; i < *count && !symbols->answer.failed; i++) {
        last->frames[i].function = keep_text(symbols);
        last->frames[i].file = keep_text(symbols);
        last->frames[i].line = message_number(&symbols->answer);
    }
    return *count * sizeof *last->frames;
}

size_t symbols_frames(struct symbols *symbols, uint64_t address, const trail_symbol **frames)
{
    if (symbols->here)
        return elf_symbols_frames(symbols->here, address, frames);
    const struct answer *known =
        answer_to(symbols, QUESTION_FRAMES, &symbols->frames, address, read_frames);
    *frames = known->frames;
    return known->count;
}

static size_t read_object(struct symbols *symbols, struct answer *last, uint64_t *count)
{
    trail_string name = keep_text(symbols);
    last->object.name = name.data;
    last->object.offset = message_number(&symbols->answer);
    *count = name.size > 0;
    return sizeof last->object;
}

const char *symbols_object(struct symbols *symbols, uint64_t address, uint64_t *offset)
{
    if (symbols->here)
        return elf_symbols_object(symbols->here, address, offset);
    const struct answer *known =
        answer_to(symbols, QUESTION_OBJECT, &symbols->objects, address, read_object);
    *offset = known->count > 0 ? known->object.offset : 0;
    return known->count > 0 ? known->object.name : NULL;
}

static size_t read_guards(struct symbols *symbols, struct answer *last, uint64_t *count)
{
    *count = message_number(&symbols->answer);
    symbols->answer.failed |= *count > GUARDS_MOST;
    for (size_t i = 0; i < *count && !symbols->answer.failed; i++) {
        last->guards[i].offset = (int64_t)message_number(&symbols->answer);
        last->guards[i].wait = (enum wire_log)message_number(&symbols->answer);
        last->guards[i].from_cfa = message_number(&symbols->answer) != 0;
        symbols->answer.failed |= last->guards[i].wait >= WIRE_LOGS;
    }
    return *count * sizeof *last->guards;
}

size_t symbols_guards(struct symbols *symbols, uint64_t address, struct guard *guards, size_t max)
{
    if (symbols->here)
        return elf_symbols_guards(symbols->here, address, guards, max);
    const struct answer *known =
        answer_to(symbols, QUESTION_GUARDS, &symbols->guards, address, read_guards);
    size_t count = known->count < max ? known->count : max;
    memcpy(guards, known->guards, count * sizeof *guards);
    return count;
}

bool symbols_find(void *context, uint64_t pc, const char **function, const char **file,
                  uint64_t *line)
{
    struct symbols *symbols = context;
    if (symbols->here)
        return elf_symbols_find(symbols->here, pc, function, file, line);
    *function = *file = "?";
    *line = 0;
    if (!ask_about(symbols, QUESTION_FIND, pc))
        return false;
    bool found = message_number(&symbols->answer) != 0;
    trail_string name = keep_text(symbols), path = keep_text(symbols);
    uint64_t number = message_number(&symbols->answer);
    if (!end_answer(symbols, NULL) || !found)
        return false;
    *function = name.data;
    *file = path.data;
    *line = number;
    return true;
}
