/*
 * Writes the start function, name and kind of goroutines: see identity.h.
 *
 * Name and kind are copied into the trail_g. The thread that ends a generation may read them while
 * another sets them, during which named_ is odd. The words are stored with release and loaded with
 * acquire, so a reader that sees a new word also sees the odd value.
 */
#include "tracer/identity.h"

#include <string.h>

#include "wire/goroutine.h"

/* MARK: The start function */

static uintptr_t start_of(const trail_g *g)
{
    return __atomic_load_n(&g->start_, __ATOMIC_RELAXED);
}

const struct table_entry *identity_stack(uint64_t generation, const trail_g *g)
{
    uintptr_t start = start_of(g), pc = start ? start + 1 : IDENTITY_UNKNOWN_PC;
    return start || !tracer.v2 ? stack_put(generation, &pc, 1) : NULL;
}

const struct table_entry *identity_under(uint64_t generation, const trail_g *g,
                                         const struct table_entry *waits)
{
    uintptr_t pcs[TRAIL_MAX_FRAMES];
    size_t n;
    if (!waits)
        return identity_stack(generation, g);
    if (__atomic_load_n(&g->rooted_, __ATOMIC_RELAXED) || !start_of(g))
        return waits;
    n = waits->size / sizeof *pcs;
    /* Drops the outermost frame if readers accept no further one. */
    if (n >= TRAIL_MAX_FRAMES)
        n = TRAIL_MAX_FRAMES - 1;
    memcpy(pcs, waits->data, n * sizeof *pcs);
    pcs[n] = start_of(g) + 1;
    return stack_put(generation, pcs, n + 1);
}

/* MARK: Name and kind */

#define TEXT_WORDS (TRAIL_NAME_MAX / 8 + 1)
_Static_assert(TRAIL_KIND_MAX <= TRAIL_NAME_MAX, "a kind fits where a name does");

/* Returns how many bytes of the text fit into `max` without splitting a character. */
static size_t text_size(const char *text, size_t max)
{
    size_t size = text ? strnlen(text, max + 1) : 0;
    if (size <= max)
        return size;
    size = max;
    while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80)
        size--;
    return size;
}

/* Copies a text to the words of a trail_g, without control characters, which separate fields. */
static void store_text(uint64_t *words, size_t n, const char *text)
{
    uint64_t copy[TEXT_WORDS] = {0};
    char *to = (char *)copy;
    size_t size = text_size(text, n * sizeof *words - 1);
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i];
    for (size_t i = 0; i < n; i++)
        __atomic_store_n(&words[i], copy[i], __ATOMIC_RELEASE);
}

static void load_text(const uint64_t *words, size_t n, uint64_t *copy)
{
    for (size_t i = 0; i < n; i++)
        copy[i] = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
}

struct texts {
    uint64_t name[TEXT_WORDS], kind[TRAIL_KIND_MAX / 8 + 1];
    uint32_t changes;
};

/*
 * Reads a consistent name and kind. Returns false if they keep changing: the thread that changes
 * them writes the line itself.
 */
static bool load_texts(const trail_g *g, struct texts *texts)
{
    for (int tries = 0; tries < 100; tries++) {
        uint32_t before = __atomic_load_n(&g->named_, __ATOMIC_ACQUIRE);
        load_text(g->name_, sizeof g->name_ / 8, texts->name);
        load_text(g->kind_, sizeof g->kind_ / 8, texts->kind);
        texts->changes = before / 2;
        if (before % 2 == 0 && __atomic_load_n(&g->named_, __ATOMIC_RELAXED) == before)
            return true;
    }
    return false;
}

/* MARK: The line */

struct line {
    char text[256];
    size_t size;
};
_Static_assert(sizeof GOROUTINE_PREFIX + (size_t)5 * 8 + (size_t)3 * 20 + TRAIL_NAME_MAX +
                       TRAIL_KIND_MAX <
                   256,
               "a line has room for all fields");

static void add(struct line *line, const char *text)
{
    size_t size = strlen(text);
    memcpy(line->text + line->size, text, size);
    line->size += size;
}

static void add_number(struct line *line, const char *field, uint64_t value)
{
    char digits[21], *at = digits + sizeof digits - 1;
    *at = '\0';
    do
        *--at = (char)('0' + value % 10);
    while (value /= 10);
    add(line, field);
    add(line, at);
}

static void add_text(struct line *line, const char *field, const uint64_t *words)
{
    const char *text = (const char *)words;
    if (*text) {
        add(line, field);
        add(line, text);
    }
}

void identity_note(trail_m *m, uint64_t generation, const trail_g *g, bool status)
{
    uint64_t stack = status && tracer.format == 22 ? stack_id(identity_stack(generation, g)) : 0;
    struct texts texts = {{0}, {0}, 0};
    struct line line = {.size = 0};
    if (__atomic_load_n(&g->named_, __ATOMIC_RELAXED) && !load_texts(g, &texts))
        texts = (struct texts){{0}, {0}, 0};
    if (!stack && !texts.changes)
        return;
    add(&line, GOROUTINE_PREFIX);
    add_number(&line, GOROUTINE_ID, g->id);
    if (texts.changes)
        add_number(&line, "\t" GOROUTINE_CHANGE, texts.changes);
    if (stack)
        add_number(&line, "\t" GOROUTINE_STACK, stack);
    add_text(&line, "\t" GOROUTINE_KIND, texts.kind);
    add_text(&line, "\t" GOROUTINE_NAME, texts.name);
    string_note(m, generation, line.text, line.size);
}

/* MARK: For the host */

/* Rewrites the line of a goroutine; this generation may already have one. */
static void note_change(const trail_g *g)
{
    uint64_t generation;
    trail_m *m;
    /* Not created yet: its creation writes the line. */
    if (!trace_is_on() || !state_load(&g->state_))
        return;
    m = section_open(&generation);
    if (!m)
        return;
    if (is_known(g))
        identity_note(m, generation, g, false);
    section_leave(m);
}

/* `frame` belongs to `what`, the function that the host called. */
static void set_text(trail_g *g, uint64_t *words, size_t n, const char *text, uintptr_t frame,
                     const char *what)
{
    uint32_t changes;
    if (!is_initialized_g(g)) {
        (void)misuse_at(TRAIL_MISUSE_OBJECT, frame, what,
                        "the goroutine was not initialized, or was moved or changed");
        return;
    }
    changes = __atomic_load_n(&g->named_, __ATOMIC_RELAXED);
    __atomic_store_n(&g->named_, changes + 1, __ATOMIC_RELAXED);
    store_text(words, n, text);
    /* Pairs with the load in load_texts: both texts are complete. */
    __atomic_store_n(&g->named_, changes + 2, __ATOMIC_RELEASE);
    note_change(g);
}

void trail_g_set_name(trail_g *g, const char *name)
{
    set_text(g, g->name_, sizeof g->name_ / 8, name, stack_frame(), "trail_g_set_name");
}

void trail_g_set_kind(trail_g *g, const char *kind)
{
    set_text(g, g->kind_, sizeof g->kind_ / 8, kind, stack_frame(), "trail_g_set_kind");
}
