/* Caches the texts that waits and holds repeat: see names.h. */
#include "collect/names.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "collect/parts.h"
#include "wire/waits.h"
#include "wire/wall.h"

uint64_t names_string(struct collect *c, const char *text)
{
    return v2_writer_string(c->trace->out.out, text_from(text));
}

/* The same few descriptors and locks are waited for all the time: their texts are not rebuilt for
 * each wait. */
static size_t wait_slot(unsigned wait, const char *name)
{
    return ((uintptr_t)name / 16 * SHM_WAITS + wait) % KNOWN_WAITS;
}

uint64_t names_known_wait(const struct collect *c, unsigned wait, const char *name)
{
    const struct known_text *known = &c->names.waits[wait_slot(wait, name)];
    return known->name == name && known->wait == wait &&
                   known->generation == v2_writer_generation(c->trace->out.out)
               ? known->id
               : 0;
}

uint64_t names_wait(struct collect *c, unsigned wait, const char *name, const char *object)
{
    char text[600];
    snprintf(text, sizeof text, "%s%s%s", wait_kinds[wait].words, *object ? " " : "", object);
    uint64_t id = names_string(c, text);
    if (name)
        c->names.waits[wait_slot(wait, name)] =
            (struct known_text){v2_writer_generation(c->trace->out.out), id, name, wait};
    return id;
}

/* Returns the ID of a constant text, written once per generation. */
static uint64_t fixed_text(struct collect *c, struct known_text *known, const char *text)
{
    uint64_t generation = v2_writer_generation(c->trace->out.out);
    if (known->id == 0 || known->generation != generation)
        *known = (struct known_text){generation, names_string(c, text), NULL, 0};
    return known->id;
}

uint64_t names_wait_category(struct collect *c)
{
    return fixed_text(c, &c->names.wait_category, WIRE_WAIT_CATEGORY);
}

uint64_t names_held_category(struct collect *c)
{
    return fixed_text(c, &c->names.held_category, WIRE_HELD_CATEGORY);
}

uint64_t names_reason(struct collect *c, uint8_t wait)
{
    return fixed_text(c, &c->names.reasons[wait], wait_reason(wait));
}

void names_clock(struct trace *t, int64_t ns, int64_t wall_ns)
{
    const int64_t second = 1000000000;
    char line[WALL_LINE];
    int size =
        snprintf(line, sizeof line, WALL_PREFIX "mono=%" PRId64 " wall=%" PRId64 ".%09" PRId64, ns,
                 wall_ns / second, wall_ns % second);
    if (t->options.version < WALL_READINGS && size > 0 && (size_t)size < sizeof line)
        v2_writer_note(t->out.out, (trail_string){line, (size_t)size});
}
