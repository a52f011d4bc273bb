/* Checks the parameters of a request and makes a command line from them. */
#include "serve/command_line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Maximum bytes of a parameter. An area of the page has at most 1000 goroutines, whose numbers are
 * sent. */
enum { MOST_VALUE = 1024, MOST_NUMBERS = 16 << 10 };

/* MARK: Allowed commands and parameters */

enum form {
    FORM_END,
    FORM_TEXT,    /* any text, such as a name */
    FORM_NUMBER,  /* digits */
    FORM_NUMBERS, /* digits and commas */
    FORM_WORD,    /* lower-case letters, digits, -, comma and dot: a list or a time */
    FORM_FLAG,    /* 1 */
    FORM_PATTERN, /* of trail find: passed as a separate argument */
    FORM_OURS,    /* set by the server, not by the request */
};

struct parameter {
    const char *name; /* also the name of the command's option */
    enum form form;
};

enum { MOST_PARAMETERS = 12 };

struct allowed {
    const char *command;
    struct parameter parameters[MOST_PARAMETERS];
};

/* clang-format off */
#define TEXT(name)    {#name, FORM_TEXT},
#define NUMBER(name)  {#name, FORM_NUMBER},
#define NUMBERS(name) {#name, FORM_NUMBERS},
#define WORD(name)    {#name, FORM_WORD},
#define FLAG(name)    {#name, FORM_FLAG},
#define PATTERN(name) {#name, FORM_PATTERN},
#define OURS(name)    {#name, FORM_OURS},
#define PARAMETERS(...) {__VA_ARGS__ {0}}

#define HIDDEN(...)
#define TERMINAL(...)
#define VIEWER(...)   __VA_ARGS__,
#define PAGE(...)     __VA_ARGS__,
/* clang-format on */

static const struct allowed allowed[] = {
#define COMMAND(name, group, where, summary, parameters) where({#name, parameters})
#include "commands.def"
};

static size_t most_bytes(enum form form)
{
    return form == FORM_NUMBERS ? MOST_NUMBERS : MOST_VALUE;
}

static bool has_form(const char *value, enum form form)
{
    static const char *const letters[] = {
        [FORM_NUMBER] = "0123456789",
        [FORM_NUMBERS] = "0123456789,",
        [FORM_WORD] = "abcdefghijklmnopqrstuvwxyz0123456789-,.",
        [FORM_FLAG] = "1",
    };
    size_t size = strlen(value);
    /* A task may have no name. */
    if (form == FORM_TEXT && size == 0)
        return true;
    if (size == 0 || size > most_bytes(form))
        return false;
    return form == FORM_TEXT || form == FORM_PATTERN || value[strspn(value, letters[form])] == '\0';
}

/* MARK: Command lines */

void words_add(struct words *words, const char *format, ...)
{
    va_list arguments;
    char *word = NULL;
    va_start(arguments, format);
    if (words->count == MOST_WORDS || vasprintf(&word, format, arguments) < 0)
        words->failed = true;
    else
        words->items[words->count++] = word;
    va_end(arguments);
}

void words_add_each(struct words *words, const char *const *list)
{
    for (; *list; list++)
        words_add(words, "%s", *list);
}

void words_free(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
}

/* Returns the value of an option of the server; NULL: not given. */
static const char *value_passed(const struct command_passed *passed, const char *name)
{
    return strcmp(name, "words") == 0 ? passed->words : passed->skip_frames;
}

static void add_parameter(struct words *words, struct exchange *exchange,
                          const struct parameter *parameter, const struct command_passed *passed)
{
    static const char *const forms[] = {
        [FORM_TEXT] = "a name",
        [FORM_NUMBER] = "a number",
        [FORM_NUMBERS] = "numbers with commas between",
        [FORM_WORD] = "a word that the command's option takes",
        [FORM_FLAG] = "1, or not there",
        [FORM_PATTERN] = "a pattern",
    };
    const char *value = parameter->form == FORM_OURS ? value_passed(passed, parameter->name)
                                                     : parameter_text(exchange, parameter->name);
    if (parameter->form == FORM_OURS && value)
        words_add(words, "--%s=%s", parameter->name, value);
    if (!value || parameter->form == FORM_OURS || parameter->form == FORM_PATTERN)
        return;
    if (!has_form(value, parameter->form))
        exchange_refuse(exchange, 400, "%s is %s, of at most %d bytes", parameter->name,
                        forms[parameter->form], (int)most_bytes(parameter->form));
    else if (parameter->form == FORM_FLAG)
        words_add(words, "--%s", parameter->name);
    else
        words_add(words, "--%s=%s", parameter->name, value);
}

static void add_window(struct words *words, struct exchange *exchange)
{
    int64_t from = parameter_number(exchange, "from", 0, MOST_TIME_NS, -1);
    int64_t to = parameter_number(exchange, "to", 0, MOST_TIME_NS, -1);
    if (from >= 0 && to >= 0 && from >= to)
        exchange_refuse(exchange, 400, "from is less than to");
    if (from >= 0)
        words_add(words, "--from=%" PRId64 "ns", from);
    if (to >= 0)
        words_add(words, "--to=%" PRId64 "ns", to);
}

static const struct allowed *find_command(struct exchange *exchange)
{
    const char *name = parameter_text(exchange, "command");
    char all[sizeof exchange->wrong] = "";
    size_t size = 0;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed && size < sizeof all; i++) {
        if (name && strcmp(name, allowed[i].command) == 0)
            return &allowed[i];
        size += (size_t)snprintf(all + size, sizeof all - size, "%s%s", i ? ", " : "",
                                 allowed[i].command);
    }
    exchange_refuse(exchange, 400, "command is one of: %s", all);
    return NULL;
}

struct check {
    struct exchange *exchange;
    const struct allowed *command;
};

/* Refuses a parameter that the command does not have. */
static bool check_parameter(void *context, const char *name)
{
    static const char *const always[] = {"command", "from", "to", "token"};
    const struct check *check = context;
    char all[160] = "from, to";
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (strcmp(name, always[i]) == 0)
            return true;
    for (size_t i = 0; i < MOST_PARAMETERS; i++) {
        const struct parameter *parameter = &check->command->parameters[i];
        size_t size = strlen(all);
        if (parameter->form == FORM_END)
            break;
        if (parameter->form == FORM_OURS)
            continue;
        if (strcmp(name, parameter->name) == 0)
            return true;
        (void)snprintf(all + size, sizeof all - size, ", %s", parameter->name);
    }
    exchange_refuse(check->exchange, 400, "%s has no parameter %.40s; it has: %s",
                    check->command->command, name, all);
    return false;
}

/* Whether the command compares two traces. */
static bool compares(const struct allowed *command)
{
    return strcmp(command->command, "diff") == 0;
}

unsigned command_line_traces(struct exchange *exchange)
{
    const struct allowed *command = find_command(exchange);
    return command ? 1 + compares(command) : 0;
}

static void add_pattern(struct words *words, struct exchange *exchange, const char *name)
{
    const char *pattern = parameter_text(exchange, name);
    if (!pattern || !has_form(pattern, FORM_PATTERN))
        exchange_refuse(exchange, 400, "pattern is what to find, of at most %d bytes", MOST_VALUE);
    else
        words_add(words, "%s", pattern);
}

bool command_line(struct exchange *exchange, const struct command_files *files, struct words *words)
{
    const struct allowed *command = find_command(exchange);
    if (command && compares(command) && !files->other)
        exchange_refuse(exchange, 400, "%s needs two traces: trail view A B", command->command);
    if (command && exchange->request)
        http_each_query(exchange->request, check_parameter,
                        &(struct check){.exchange = exchange, .command = command});
    if (!command || exchange->status != 0)
        return false;
    WORDS_ADD(words, "trail", command->command, "--json");
    add_window(words, exchange);
    for (size_t i = 0; i < MOST_PARAMETERS && command->parameters[i].form != FORM_END; i++)
        add_parameter(words, exchange, &command->parameters[i], &files->passed);
    WORDS_ADD(words, "--", files->path);
    if (compares(command))
        words_add(words, "%s", files->other);
    if (command->parameters[0].form == FORM_PATTERN)
        add_pattern(words, exchange, command->parameters[0].name);
    if (words->failed)
        exchange_refuse(exchange, 500, "no memory");
    return exchange->status == 0;
}
