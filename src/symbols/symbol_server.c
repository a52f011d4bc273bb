/* Answers questions about symbols: see symbol_server.h. */
#include "symbols/symbol_server.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "symbols/elf_symbols.h"
#include "symbols/guards.h"
#include "symbols/message.h"
#include "symbols/named_files.h"

struct server {
    struct elf_symbols **files; /* by number; all stay open */
    size_t count, capacity;
};

static void put_string(struct message *answer, trail_string text)
{
    message_put_text(answer, text.data, text.size);
}

static char *copy_text(trail_string text)
{
    return text.size > 0 ? strndup(text.data, text.size) : NULL;
}

static void open_file(struct server *server, struct message *question, struct message *answer)
{
    trail_error err = no_error();
    char *path = copy_text(message_text(question)), *wanted = copy_text(message_text(question));
    enum symbols_detail detail = (enum symbols_detail)message_number(question);
    struct elf_symbols *file = NULL;
    if (!path || !GROW(server->files, server->capacity, server->count + 1))
        (void)error_no_memory(&err);
    else
        file = elf_symbols_open(path, wanted, detail, &err);
    message_put_number(answer, file ? TRAIL_OK : err.code);
    message_put_word(answer, file ? "" : err.message);
    message_put_number(answer, file && elf_symbols_have_lines(file));
    message_put_number(answer, server->count);
    if (file)
        server->files[server->count++] = file;
    free(path);
    free(wanted);
}

static void put_frames(struct elf_symbols *file, uint64_t address, struct message *answer)
{
    const trail_symbol *frames = NULL;
    size_t count = elf_symbols_frames(file, address, &frames);
    message_put_number(answer, count);
    for (size_t i = 0; i < count; i++) {
        put_string(answer, frames[i].function);
        put_string(answer, frames[i].file);
        message_put_number(answer, frames[i].line);
    }
}

static void put_object(struct elf_symbols *file, uint64_t address, struct message *answer)
{
    uint64_t offset = 0;
    const char *name = elf_symbols_object(file, address, &offset);
    message_put_word(answer, name ? name : "");
    message_put_number(answer, offset);
}

static void put_guards(struct elf_symbols *file, uint64_t address, struct message *answer)
{
    struct guard guards[GUARDS_MOST];
    size_t count = elf_symbols_guards(file, address, guards, GUARDS_MOST);
    message_put_number(answer, count);
    for (size_t i = 0; i < count; i++) {
        message_put_number(answer, (uint64_t)guards[i].offset);
        message_put_number(answer, guards[i].wait);
        message_put_number(answer, guards[i].from_cfa);
    }
}

static void put_found(struct elf_symbols *file, uint64_t address, struct message *answer)
{
    const char *function = "", *path = "";
    uint64_t line = 0;
    message_put_number(answer, elf_symbols_find(file, address, &function, &path, &line));
    message_put_word(answer, function);
    message_put_word(answer, path);
    message_put_number(answer, line);
}

/* Answers a question about an open file. */
static void answer_about(struct server *server, enum question what, struct message *question,
                         struct message *answer)
{
    uint64_t number = message_number(question), address;
    struct elf_symbols *file = number < server->count ? server->files[number] : NULL;
    if (!file)
        return;
    address = message_number(question);
    if (what == QUESTION_FRAMES)
        put_frames(file, address, answer);
    else if (what == QUESTION_OBJECT)
        put_object(file, address, answer);
    else if (what == QUESTION_GUARDS)
        put_guards(file, address, answer);
    else if (what == QUESTION_FIND)
        put_found(file, address, answer);
}

static void put_answer(struct server *server, struct message *question, struct message *answer)
{
    enum question what = (enum question)message_number(question);
    const struct refused_file *refused = named_files_refused();
    message_clear(answer);
    if (what == QUESTION_OPEN)
        open_file(server, question, answer);
    else
        answer_about(server, what, question, answer);
    message_put_word(answer, refused->problem);
    message_put_word(answer, refused->path);
}

void symbol_server_run(int fd)
{
    struct server server = {0};
    struct message question = {0}, answer = {0};
    while (message_receive(&question, fd, INT64_MAX) == 0) {
        put_answer(&server, &question, &answer);
        if (!message_send(&answer, fd))
            break;
    }
}
