/* Finds and replaces the stacks of a generation: see naming.h. */
#include "write/naming.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/search.h"
#include "base/text.h"
#include "base/utf8.h"

/* A map of PCs over all generations is reset when it has this many, so no trace makes it grow
 * without limit. */
#define MOST_SEEN ((size_t)1 << 20)

/* Numbers in place of PCs begin here, and modules end here: on x86-64 and arm64 programs have
 * addresses of 47 and 48 bits, and more only if they ask for them. They take seven bytes in the
 * file, as any PC there. */
#define CALLER_BIT ((uint64_t)1 << 48)

/* What a PC is replaced by: frames, innermost first. */
struct naming_pc {
    size_t count; /* 0: unchanged */
    struct naming_frame frames[];
};

/* Values of naming.seen, as pointers. */
enum seen { SEEN_NEVER, SEEN_HOMELESS, SEEN_UNKNOWN, SEEN_RESOLVED };

void naming_init(struct naming *naming, const trail_symbolize_options *options, size_t longest)
{
    *naming = (struct naming){.options = options, .longest = longest};
}

void naming_free(struct naming *naming)
{
    arena_free(&naming->arena);
    arena_free(&naming->caller_arena);
    idmap_free(&naming->pcs);
    idmap_free(&naming->seen);
    idmap_free(&naming->callers);
    idmap_free(&naming->taken);
    free(naming->texts);
    free(naming->slots);
    free(naming->modules);
}

void naming_begin(struct naming *naming)
{
    arena_reset(&naming->arena);
    idmap_clear(&naming->pcs);
    if (naming->seen.count > MOST_SEEN)
        idmap_clear(&naming->seen);
    if (naming->slots)
        memset(naming->slots, 0, naming->slot_count * sizeof *naming->slots);
    naming->text_count = naming->written = naming->module_count = 0;
    naming->last_id = 0;
    naming->sorted = false;
}

/* MARK: Texts */

/* Returns the slot of a text: the one that has it, or the free one where it would go. */
static size_t *text_slot(struct naming *naming, const trail_string *text)
{
    uint64_t hash = hash_keyed_bytes(0, text->data, text->size);
    for (;; hash++) {
        size_t *slot = &naming->slots[hash & (naming->slot_count - 1)];
        if (*slot == 0 || text_equal(naming->texts[*slot - 1].text, *text))
            return slot;
    }
}

/* Makes room for one more text; at least half of the slots stay free. */
static bool text_room(struct naming *naming)
{
    if (!GROW(naming->texts, naming->text_capacity, naming->text_count + 1))
        return false;
    if (2 * (naming->text_count + 1) <= naming->slot_count)
        return true;
    size_t wanted = naming->slot_count ? 2 * naming->slot_count : 1024;
    size_t *slots = calloc(wanted, sizeof *slots);
    if (!slots)
        return false;
    free(naming->slots);
    naming->slots = slots;
    naming->slot_count = wanted;
    for (size_t i = 0; i < naming->text_count; i++) {
        size_t *slot = text_slot(naming, &naming->texts[i].text);
        *slot = *slot ? *slot : i + 1;
    }
    return true;
}

static bool text_add(struct naming *naming, struct naming_text text)
{
    if (!text_room(naming))
        return false;
    size_t *slot = text_slot(naming, &text.text);
    naming->texts[naming->text_count++] = text;
    *slot = *slot ? *slot : naming->text_count;
    return true;
}

/* Sets *id to the text's ID; the empty text has ID 0 in all formats. */
static int text_id(struct naming *naming, trail_string text, uint64_t *id, trail_error *err)
{
    text = utf8_last(text, naming->longest);
    *id = 0;
    if (text.size == 0)
        return 0;
    if (!text_room(naming))
        return error_no_memory(err);
    const size_t *slot = text_slot(naming, &text);
    if (*slot) {
        *id = naming->texts[*slot - 1].id;
        return 0;
    }
    const char *copy = arena_copy(&naming->arena, text.data, text.size);
    if (!copy || !text_add(naming, (struct naming_text){{copy, text.size}, naming->last_id + 1}))
        return error_no_memory(err);
    *id = ++naming->last_id;
    return 0;
}

const struct naming_text *naming_new_string(struct naming *naming)
{
    return naming->written < naming->text_count ? &naming->texts[naming->written++] : NULL;
}

/* MARK: Modules */

/* Takes `word` and everything up to the next space off the front of a line. */
static bool take_field(trail_string *line, const char *word, trail_string *value)
{
    if (!text_take(line, word))
        return false;
    const char *space = memchr(line->data, ' ', line->size);
    if (!space)
        return false;
    *value = (trail_string){line->data, (size_t)(space - line->data)};
    line->size -= value->size + 1;
    line->data = space + 1;
    return true;
}

static bool take_address(trail_string *line, const char *word, uint64_t *value)
{
    trail_string text;
    if (!take_field(line, word, &text) || text.size < 3 || text.size > 18 ||
        memcmp(text.data, "0x", 2) != 0)
        return false;
    *value = 0;
    for (size_t i = 2; i < text.size; i++) {
        int digit = hex_digit(text.data[i]);
        if (digit < 0)
            return false;
        *value = *value << 4 | (unsigned)digit;
    }
    return true;
}

static bool take_build_id(trail_string *line, trail_string *id)
{
    if (!take_field(line, "build-id=", id))
        return false;
    if (id->size == 1 && *id->data == '-')
        id->size = 0;
    for (size_t i = 0; i < id->size; i++)
        if (hex_digit(id->data[i]) < 0)
            return false;
    return id->size % 2 == 0;
}

/* A text that merely looks like a row of the module map belongs to the program. */
static bool parse_module(trail_string line, trail_module *module)
{
    static const char prefix[] = "trail.module ", path[] = "path=";
    if (line.size < sizeof prefix - 1 || memcmp(line.data, prefix, sizeof prefix - 1) != 0)
        return false;
    line.data += sizeof prefix - 1;
    line.size -= sizeof prefix - 1;
    if (!take_address(&line, "start=", &module->start) ||
        !take_address(&line, "end=", &module->end) ||
        !take_address(&line, "bias=", &module->bias) || !take_build_id(&line, &module->build_id))
        return false;
    if (line.size < sizeof path || memcmp(line.data, path, sizeof path - 1) != 0)
        return false;
    module->path = (trail_string){line.data + sizeof path - 1, line.size - (sizeof path - 1)};
    return module->start < module->end && module->end <= CALLER_BIT &&
           !memchr(module->path.data, '\0', module->path.size);
}

static int module_order(const void *a, const void *b)
{
    const trail_module *x = a, *y = b;
    return ORDER(x->start, y->start);
}

/* Returns the module that contains an address; NULL: none. In an honest trace they do not
 * overlap. */
static const trail_module *module_find(struct naming *naming, uint64_t address)
{
    if (!naming->sorted && naming->module_count > 1)
        qsort(naming->modules, naming->module_count, sizeof *naming->modules, module_order);
    naming->sorted = true;
    const trail_module *modules = naming->modules;
    size_t behind = SEARCH(i, 0, naming->module_count, modules[i].start <= address);
    return behind > 0 && address < modules[behind - 1].end ? &modules[behind - 1] : NULL;
}

bool naming_string(struct naming *naming, uint64_t id, const char *data, size_t size)
{
    trail_module module;
    if (id > naming->last_id)
        naming->last_id = id;
    if (parse_module((trail_string){data, size}, &module)) {
        if (!APPEND(naming->modules, naming->module_capacity, naming->module_count, module))
            return false;
        if (naming->module_count > naming->stats.modules)
            naming->stats.modules = naming->module_count;
    }
    /* ID 0 is the empty string, whatever a trace says. */
    if (id != 0 && !text_add(naming, (struct naming_text){{data, size}, id}))
        return false;
    naming->written = naming->text_count;
    return true;
}

/* MARK: PCs */

/* Counts a PC once, by the best that any generation knows about it. */
static void count_pc(struct naming *naming, uint64_t pc, enum seen now)
{
    trail_symbolize_stats *stats = &naming->stats;
    enum seen before = (enum seen)(uintptr_t)idmap_find(&naming->seen, pc);
    if (before >= now)
        return;
    stats->pcs += before == SEEN_NEVER;
    stats->homeless += now == SEEN_HOMELESS;
    stats->homeless -= before == SEEN_HOMELESS;
    stats->resolved += now == SEEN_RESOLVED;
    (void)idmap_put(&naming->seen, pc, (void *)(uintptr_t)now); /* out of memory: counted twice */
}

/* The PC that is tried after `taken` others with this hash. */
static uint64_t pc_of_hash(uint64_t hash, uintptr_t taken)
{
    return CALLER_BIT | ((taken ? hash_mix(hash, taken) : hash) & (CALLER_BIT - 1));
}

/*
 * Returns a number that no other caller has; 0: out of memory. It is computed from function, file
 * and line, so that it is the same when a trace is symbolized again. Anyone can compute names with
 * equal hashes: the next attempt begins where the last one for this hash ended.
 */
static uint64_t new_pc(struct naming *naming, const trail_symbol *symbol)
{
    uint64_t hash = hash_bytes(symbol->function.data, symbol->function.size);
    hash = hash_mix(hash_mix(hash, hash_bytes(symbol->file.data, symbol->file.size)), symbol->line);
    uint64_t first = pc_of_hash(hash, 0), pc;
    uintptr_t taken = (uintptr_t)idmap_find(&naming->taken, first);
    while (taken > 0 && idmap_find(&naming->taken, pc_of_hash(hash, taken)))
        taken++;
    pc = pc_of_hash(hash, taken);
    /* NOLINTBEGIN(performance-no-int-to-ptr): numbers, never followed. */
    return idmap_put(&naming->taken, pc, (void *)(uintptr_t)1) &&
                   idmap_put(&naming->taken, first, (void *)(taken + 1))
               ? pc
               : 0;
    /* NOLINTEND(performance-no-int-to-ptr) */
}

/*
 * Returns the number in place of the PC of a frame into which something was inlined, the same in
 * every generation. Callers with equal keyed hashes would share one, which does not happen in
 * practice.
 */
static uint64_t caller_pc(struct naming *naming, const trail_symbol *symbol)
{
    uint64_t hash = hash_keyed_bytes(0, symbol->function.data, symbol->function.size);
    hash = hash_keyed_bytes(hash, symbol->file.data, symbol->file.size);
    hash = hash_keyed_mix(hash, symbol->line);
    uint64_t *pc = idmap_find(&naming->callers, hash);
    if (pc)
        return *pc;
    pc = arena_alloc(&naming->caller_arena, sizeof *pc);
    if (!pc || (*pc = new_pc(naming, symbol)) == 0 || !idmap_put(&naming->callers, hash, pc))
        return 0;
    return *pc;
}

static int fill_pc(struct naming *naming, struct naming_pc *entry, uint64_t pc,
                   const trail_symbol *symbols, size_t count, trail_error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct naming_frame *frame = &entry->frames[i];
        frame->pc = i == 0 ? pc : caller_pc(naming, &symbols[i]);
        frame->line = symbols[i].line;
        if (frame->pc == 0)
            return error_no_memory(err);
        if (text_id(naming, symbols[i].function, &frame->function, err) < 0 ||
            text_id(naming, symbols[i].file, &frame->file, err) < 0)
            return -1;
    }
    entry->count = count;
    return 0;
}

/* Returns what is known about a PC that was not asked for before. NULL: *err is set. */
static struct naming_pc *resolve_pc(struct naming *naming, uint64_t pc, trail_error *err)
{
    const trail_symbol *symbols = NULL;
    /* Names need IDs; Go assigns them from 1 on, so only a hostile trace has none left. */
    bool has_ids = naming->last_id < INT64_MAX;
    const trail_module *module = has_ids ? module_find(naming, pc - 1) : NULL;
    size_t count = 0;
    if (module)
        count = naming->options->resolve(naming->options->resolve_context, module,
                                         pc - 1 - module->bias, &symbols);
    if (count > NAMING_MAX_FRAMES)
        count = NAMING_MAX_FRAMES;
    count_pc(naming, pc, !module ? SEEN_HOMELESS : count > 0 ? SEEN_RESOLVED : SEEN_UNKNOWN);
    struct naming_pc *entry =
        arena_alloc(&naming->arena, sizeof *entry + count * sizeof *entry->frames);
    if (!entry || !idmap_put(&naming->pcs, pc, entry)) {
        error_no_memory(err);
        return NULL;
    }
    entry->count = 0;
    return fill_pc(naming, entry, pc, symbols, count, err) < 0 ? NULL : entry;
}

static bool frame_equal(const struct naming_frame *a, const struct naming_frame *b)
{
    return a->pc == b->pc && a->function == b->function && a->file == b->file && a->line == b->line;
}

/* Returns what replaces a frame: *count frames at *parts, the frame itself if nothing better is
 * known. */
static int find_parts(struct naming *naming, const struct naming_frame *frame,
                      const struct naming_frame **parts, size_t *count, trail_error *err)
{
    *parts = frame;
    *count = 1;
    if (!naming_wants(frame))
        return 0;
    const struct naming_pc *known = idmap_find(&naming->pcs, frame->pc);
    if (!known && !(known = resolve_pc(naming, frame->pc, err)))
        return -1;
    if (known->count > 0) {
        *parts = known->frames;
        *count = known->count;
    }
    return 0;
}

int naming_stack(struct naming *naming, const struct naming_frame *frames, size_t count,
                 struct naming_frame *to, trail_error *err)
{
    const struct naming_frame *parts = NULL;
    size_t made = 0, taken = 0, part = 0, part_count = 0;
    bool changed = false;
    for (; (part < part_count || taken < count) && made < NAMING_MAX_FRAMES; part++) {
        if (part == part_count) {
            if (find_parts(naming, &frames[taken], &parts, &part_count, err) < 0)
                return -1;
            part = 0;
        }
        struct naming_frame *frame = &to[made++];
        *frame = parts[part];
        if (part == 0 && frame->function == 0) /* the recording process may have known more: */
            frame->function = frames[taken].function;
        if (part == 0 && frame->file == 0) /* for instance the module */
            frame->file = frames[taken].file;
        /* A caller that is already there comes from an earlier symbolization. */
        bool there = part == 0 || (taken < count && frames[taken].pc == frame->pc);
        changed |= !there || !frame_equal(frame, &frames[taken]);
        taken += there;
    }
    naming->stats.cut_stacks += changed && (part < part_count || taken < count);
    return changed ? (int)made : 0;
}
