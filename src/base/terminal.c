/* Filters everything that is written to a terminal. */
#include "base/terminal.h"

#include <ctype.h>
#include <string.h>

#include "base/output.h"
#include "base/plain.h"
#include "base/utf8.h"

/* A buffer that is written when it is full. */
struct pieces {
    int fd;
    bool failed;
    size_t used;
    char text[1024];
};

static void put_piece(struct pieces *pieces, const void *data, size_t size)
{
    if (pieces->used + size > sizeof pieces->text) {
        pieces->failed = pieces->failed || !write_all(pieces->fd, pieces->text, pieces->used);
        pieces->used = 0;
    }
    memcpy(pieces->text + pieces->used, data, size);
    pieces->used += size;
}

/* Returns the size of a colour sequence "\033[1m" at `at`; 0 if it is not one. */
static size_t colour_size(const uint8_t *at, const uint8_t *end)
{
    size_t size = 2, left = (size_t)(end - at);
    if (left < 4 || at[0] != '\033' || at[1] != '[')
        return 0;
    while (size < left && size < 5 && isdigit(at[size]))
        size++;
    return size > 2 && size < left && at[size] == 'm' ? size + 1 : 0;
}

/* Whether [at, end) is an incomplete character that more bytes could complete. */
static bool is_cut(const uint8_t *at, const uint8_t *end)
{
    uint8_t whole[4];
    size_t left = (size_t)(end - at), wanted = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
    uint32_t rune;
    if (*at < 0xc2 || *at > 0xf4 || left >= wanted)
        return false;
    /*
     * The smallest and greatest continuation bytes: one of them completes the character if any
     * does.
     */
    for (unsigned last = 0x80; last <= 0xbf; last += 0x3f) {
        memset(whole, (int)last, sizeof whole);
        memcpy(whole, at, left);
        if (utf8_decode(whole, whole + wanted, &rune) > 0)
            return true;
    }
    return false;
}

static size_t pass_one(const struct terminal *terminal, struct pieces *pieces, const uint8_t *at,
                       const uint8_t *end)
{
    size_t own = *at == '\n' || *at == '\t' ? 1 : terminal->colours ? colour_size(at, end) : 0;
    char shown[PLAIN_MOST];
    unsigned size;
    if (own > 0) {
        put_piece(pieces, at, own);
        return own;
    }
    unsigned taken = plain_step(at, end, shown, &size);
    put_piece(pieces, shown, size);
    return taken;
}

static bool flush_pieces(struct pieces *pieces)
{
    return !pieces->failed && write_all(pieces->fd, pieces->text, pieces->used);
}

/* Completes a held character with the first bytes of `data`. Returns their number. */
static size_t pass_held(struct terminal *terminal, struct pieces *pieces, const uint8_t *data,
                        size_t size)
{
    uint8_t *held = terminal->held;
    size_t taken = 0;
    while (terminal->count > 0 && taken < size && is_cut(held, held + terminal->count) &&
           utf8_continues((char)data[taken]))
        held[terminal->count++] = data[taken++];
    if (terminal->count == 0 || (taken == size && is_cut(held, held + terminal->count)))
        return taken;
    for (size_t at = 0; at < terminal->count;)
        at += pass_one(terminal, pieces, held + at, held + terminal->count);
    terminal->count = 0;
    return taken;
}

bool terminal_write(struct terminal *terminal, const void *data, size_t size)
{
    struct pieces pieces = {.fd = terminal->fd};
    const uint8_t *at = data, *end = at + size;
    if (terminal->open)
        return terminal_finish(terminal) && write_all(terminal->fd, data, size);
    at += pass_held(terminal, &pieces, at, size);
    while (at < end && !pieces.failed) {
        if (is_cut(at, end)) {
            terminal->count = (unsigned)(end - at);
            memcpy(terminal->held, at, terminal->count);
            break;
        }
        at += pass_one(terminal, &pieces, at, end);
    }
    return flush_pieces(&pieces);
}

bool terminal_finish(struct terminal *terminal)
{
    struct pieces pieces = {.fd = terminal->fd};
    for (size_t at = 0; at < terminal->count;)
        at += pass_one(terminal, &pieces, terminal->held + at, terminal->held + terminal->count);
    terminal->count = 0;
    return flush_pieces(&pieces);
}
