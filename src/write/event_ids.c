/* Assigns the IDs of strings and stacks in the written trace: see event_ids.h. */
#include "write/event_ids.h"

#include <string.h>
#include <trail/analyze.h>

#include "base/grow.h"
#include "read/identity.h"
#include "wire/wire.h"
#include "write/anonymize.h"
#include "write/v2_writer.h"

static struct known_id *known(struct event_writer *w, struct known_ids *ids, uint32_t handle)
{
    if (GROW_ZEROED(ids->ids, ids->capacity, (size_t)handle + 1))
        return &ids->ids[handle];
    w->model.no_memory = true;
    return NULL;
}

/* MARK: Strings */

uint64_t event_string_id(struct event_writer *w, trail_string_handle handle)
{
    struct stand_in room;
    if (handle == 0 || !w->begun)
        return 0;
    struct known_id *id = known(w, &w->from->strings, handle);
    if (!id || id->life == w->from->life)
        return id ? id->id : 0;
    trail_string text = trail_reader_string(w->from->reader, handle);
    if (w->anonymizer)
        text = anonymize_text(w->anonymizer, text, &room);
    *id = (struct known_id){w->from->life, v2_writer_string(w->out, text)};
    return id->id;
}

static uint64_t reason_text_id(struct event_writer *w, trail_string text)
{
    struct stand_in room;
    if (w->anonymizer)
        text = anonymize_reason(w->anonymizer, text, &room);
    return v2_writer_string(w->out, text);
}

uint64_t event_reason_id(struct event_writer *w, trail_string_handle handle)
{
    if (handle == 0 || !w->begun)
        return 0;
    struct known_id *id = known(w, &w->from->reasons, handle);
    if (id && id->life != w->from->life)
        *id = (struct known_id){w->from->life,
                                reason_text_id(w, trail_reader_string(w->from->reader, handle))};
    return id ? id->id : 0;
}

uint64_t event_stw_kind_id(struct event_writer *w, trail_string_handle name)
{
    trail_string text = trail_reader_string(w->from->reader, name);
    const char *open = text.size > 0 ? memchr(text.data, '(', text.size) : NULL;
    if (!w->begun || !open)
        return 0;
    open++;
    size_t left = text.size - (size_t)(open - text.data);
    return reason_text_id(w, (trail_string){open, left > 0 ? left - 1 : 0});
}

/* MARK: Stacks */

/* Prefixes the start function with the label. The runtime's own functions keep their names, by
 * which they are recognised. */
static void label_root(const struct origin *origin, struct v2_frame *root, char *room)
{
    trail_string name = root->function, label = origin->label;
    size_t left = V2_MAX_STRING - label.size;
    if (label.size == 0 || trail_is_system_goroutine(name))
        return;
    name.size = name.size < left ? name.size : left;
    memcpy(room, label.data, label.size);
    memcpy(room + label.size, name.data, name.size);
    root->function = (trail_string){room, label.size + name.size};
    root->pc |= ORIGIN_ROOT_PC;
}

static uint64_t written_stack(struct event_writer *w, trail_stack_handle handle)
{
    char room[V2_MAX_STRING];
    struct v2_frame frames[V2_MAX_FRAMES];
    struct stand_in rooms[V2_MAX_FRAMES][2];
    size_t count;
    const trail_frame *from = trail_reader_stack(w->from->reader, handle, &count);
    if (count > V2_MAX_FRAMES)
        count = V2_MAX_FRAMES;
    for (size_t i = 0; i < count; i++)
        frames[i] = (struct v2_frame){
            .pc = (from[i].pc & w->from->pc_mask) | w->from->pc_bits,
            .function = trail_reader_string(w->from->reader, from[i].function),
            .file = trail_reader_string(w->from->reader, from[i].file),
            .line = from[i].line,
        };
    for (size_t i = 0; i < count && w->anonymizer; i++)
        anonymize_frame(w->anonymizer, &frames[i].function, &frames[i].file, rooms[i]);
    if (count > 0)
        label_root(w->from, &frames[count - 1], room);
    return v2_writer_stack(w->out, frames, count);
}

uint64_t event_new_stack_id(struct event_writer *w, trail_stack_handle handle)
{
    if (handle == 0 || !w->begun)
        return 0;
    struct known_id *id = known(w, &w->from->stacks, handle);
    if (id && id->life != w->from->life)
        *id = (struct known_id){w->from->life, written_stack(w, handle)};
    return id ? id->id : 0;
}

/* MARK: Goroutines */

void event_label_g(struct event_writer *w, int64_t id, trail_stack_handle start)
{
    const trail_reader *reader = w->origins->reader;
    trail_goroutine_label label = {{"", 0}, {"", 0}};
    struct stand_in rooms[2];
    char room[IDENTITY_LINE];
    if (!w->begun || w->origins->next)
        return;
    bool labelled = trail_reader_goroutine(reader, id, &label);
    bool starts =
        start && w->version == 22 && trail_reader_maker(reader)->made_by == TRAIL_MADE_BY_HOST;
    if (!labelled && !starts)
        return;
    if (w->anonymizer) {
        label.name = anonymize_text(w->anonymizer, label.name, &rooms[0]);
        label.kind = anonymize_text(w->anonymizer, label.kind, &rooms[1]);
    }
    struct identity identity = {.id = (uint64_t)id,
                                .change = labelled,
                                .stack = starts ? event_stack_id(w, start) : 0,
                                .name = label.name,
                                .kind = label.kind};
    v2_writer_note(w->out, identity_line(&identity, room));
}
