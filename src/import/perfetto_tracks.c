/* Reads Perfetto's track events: see perfetto_tracks.h. */
#include "import/perfetto_tracks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "wire/perfetto.h"

/* The largest time in microseconds that can be converted to nanoseconds. */
#define MOST_US (INT64_MAX / 2000)

struct track {
    uint32_t thread; /* index + 1 in the threads of the spans; 0: not a thread's track */
    const char *name;
};

/* State that applies to the packets of one writer. */
struct sequence {
    struct idmap names, categories; /* IID -> text */
    bool has_track;
    uint64_t track;  /* of events that do not name one */
    uint32_t thread; /* index + 1: from its ThreadDescriptor */
    int64_t time_us; /* of the last event with a relative time */
    uint64_t clock;
    struct sequence_clocks clocks;
};

/* A packet's parts. */
struct packet {
    uint64_t time, sequence, clock;
    int64_t ns; /* its time; -1: invalid */
    bool has_time, has_clock, cleared, dropped;
    struct proto clocks, event, interned, thread, defaults, track;
};

/* An event as it is read. */
struct raw_event {
    struct proto name, category, scope;
    uint64_t type, name_iid, category_iid, track, phase, duration_us, id, pid, tid;
    int64_t delta_us, absolute_us;
    bool has_track, has_pid, has_tid;
};

/* MARK: Parts */

static bool is_part(const struct proto *part)
{
    return part->at != NULL;
}

static size_t size_of(const struct proto *text)
{
    return (size_t)(text->end - text->at);
}

static void read_packet(struct proto rest, struct packet *packet)
{
    struct proto_field field;
    *packet = (struct packet){0};
    while (proto_next(&rest, &field)) {
        switch (field.id) {
        case PACKET_CLOCK_SNAPSHOT:
            packet->clocks = field.bytes;
            break;
        case PACKET_TIMESTAMP:
            packet->time = field.number;
            packet->has_time = true;
            break;
        case PACKET_SEQUENCE_ID:
            packet->sequence = field.number;
            break;
        case PACKET_TRACK_EVENT:
            packet->event = field.bytes;
            break;
        case PACKET_INTERNED_DATA:
            packet->interned = field.bytes;
            break;
        case PACKET_SEQUENCE_FLAGS:
            packet->cleared |= (field.number & SEQUENCE_STATE_CLEARED) != 0;
            break;
        case PACKET_INCREMENTAL_STATE_CLEARED:
            packet->cleared |= field.number != 0;
            break;
        case PACKET_PREVIOUS_PACKET_DROPPED:
            packet->dropped = field.number != 0;
            break;
        case PACKET_THREAD_DESCRIPTOR:
            packet->thread = field.bytes;
            break;
        case PACKET_CLOCK_ID:
            packet->clock = field.number;
            packet->has_clock = true;
            break;
        case PACKET_DEFAULTS:
            packet->defaults = field.bytes;
            break;
        case PACKET_TRACK_DESCRIPTOR:
            packet->track = field.bytes;
            break;
        default:
            break;
        }
    }
}

static const char *keep(struct tracks *t, const struct proto *text)
{
    size_t size = size_of(text);
    return import_spans_keep(&t->spans, (const char *)text->at,
                             size < SPAN_NAME_MAX ? size : SPAN_NAME_MAX - 1);
}

/* MARK: Tracks */

/* Returns the index + 1 of the thread in a ThreadDescriptor; 0 if it has no TID. Sets its reference
 * time if it has one. */
static uint32_t read_thread(struct tracks *t, struct proto descriptor, int64_t *time_us)
{
    struct proto_field field;
    struct proto name = {0};
    uint64_t pid = 0, tid = 0;
    while (proto_next(&descriptor, &field)) {
        if (field.id == THREAD_PID)
            pid = field.number;
        else if (field.id == THREAD_TID)
            tid = field.number;
        else if (field.id == THREAD_NAME)
            name = field.bytes;
        else if (field.id == THREAD_REFERENCE_US && field.number <= MOST_US)
            *time_us = (int64_t)field.number;
    }
    if (tid == 0)
        return 0;
    uint32_t thread = import_spans_thread(&t->spans, pid, tid);
    if (size_of(&name) > 0)
        import_spans_name_thread(&t->spans, thread,
                                 (trail_string){(const char *)name.at, size_of(&name)});
    return thread + 1;
}

/* Returns the track, which may not be described yet; NULL if out of memory. */
static struct track *track_of(struct tracks *t, uint64_t uuid)
{
    struct track *track = objects_get(&t->tracks, uuid);
    if (!track)
        t->spans.failed = true;
    else if (!track->name)
        track->name = "";
    return track;
}

static void learn_track(struct tracks *t, struct proto descriptor)
{
    struct proto_field field;
    struct proto name = {0}, thread = {0};
    uint64_t uuid = 0;
    int64_t unused = 0;
    while (proto_next(&descriptor, &field)) {
        if (field.id == DESCRIPTOR_UUID)
            uuid = field.number;
        else if (field.id == DESCRIPTOR_NAME || field.id == DESCRIPTOR_STATIC_NAME)
            name = field.bytes;
        else if (field.id == DESCRIPTOR_THREAD)
            thread = field.bytes;
    }
    struct track *track = track_of(t, uuid);
    if (track && is_part(&thread))
        track->thread = read_thread(t, thread, &unused);
    if (track && size_of(&name) > 0)
        track->name = keep(t, &name);
}

/* A track that belongs to no thread and has no writing thread becomes a thread of its own, with a
 * number that is not a PID. */
static uint32_t own_thread(struct tracks *t, const struct track *track, uint64_t uuid)
{
    uint32_t thread = import_spans_thread(&t->spans, UINT64_MAX, uuid | UINT64_C(1) << 63);
    if (*track->name)
        import_spans_name_thread(&t->spans, thread, text_from(track->name));
    return thread;
}

/* MARK: Sequences */

/* Returns NULL if out of memory. */
static struct sequence *sequence_of(struct tracks *t, uint64_t id)
{
    struct sequence *sequence = objects_find(&t->sequences, id);
    if (sequence)
        return sequence;
    sequence = objects_get(&t->sequences, id);
    if (sequence)
        sequence->clock = CLOCK_OF_TRACE;
    else
        t->spans.failed = true;
    return sequence;
}

static void begin_anew(struct sequence *sequence)
{
    idmap_clear(&sequence->names);
    idmap_clear(&sequence->categories);
    sequence->has_track = false;
    sequence->thread = 0;
    sequence->time_us = 0;
    sequence->clock = CLOCK_OF_TRACE;
}

static void take_defaults(struct sequence *sequence, struct proto defaults)
{
    struct proto_field field, part;
    while (proto_next(&defaults, &field)) {
        if (field.id == DEFAULTS_CLOCK_ID)
            sequence->clock = field.number;
        while (field.id == DEFAULTS_TRACK_EVENT && proto_next(&field.bytes, &part)) {
            sequence->has_track |= part.id == EVENT_TRACK;
            if (part.id == EVENT_TRACK)
                sequence->track = part.number;
        }
    }
}

static void take_interned(struct tracks *t, struct sequence *sequence, struct proto interned)
{
    struct proto_field field, part;
    while (proto_next(&interned, &field)) {
        struct idmap *map = field.id == INTERNED_EVENT_NAMES        ? &sequence->names
                            : field.id == INTERNED_EVENT_CATEGORIES ? &sequence->categories
                                                                    : NULL;
        uint64_t iid = 0;
        const char *text = "";
        while (map && proto_next(&field.bytes, &part)) {
            if (part.id == NAMED_IID)
                iid = part.number;
            else if (part.id == NAMED_TEXT)
                text = keep(t, &part.bytes);
        }
        if (map && !idmap_put(map, iid, (void *)(uintptr_t)text))
            t->spans.failed = true;
    }
}

/* What the packet changes in its sequence applies to its own event, too. */
static void take_state(struct tracks *t, struct sequence *sequence, const struct packet *packet)
{
    if (packet->dropped)
        t->spans.stats->lost++;
    if (packet->cleared)
        begin_anew(sequence);
    if (is_part(&packet->clocks) && !clocks_take_own(&sequence->clocks, packet->clocks))
        t->spans.failed = true;
    take_defaults(sequence, packet->defaults);
    take_interned(t, sequence, packet->interned);
    if (is_part(&packet->thread))
        sequence->thread = read_thread(t, packet->thread, &sequence->time_us);
}

/* MARK: Events */

static void read_legacy(struct proto legacy, struct raw_event *raw)
{
    struct proto_field field;
    while (proto_next(&legacy, &field)) {
        switch (field.id) {
        case LEGACY_NAME_IID:
            raw->name_iid = field.number;
            break;
        case LEGACY_PHASE:
            raw->phase = field.number;
            break;
        case LEGACY_DURATION_US:
            raw->duration_us = field.number;
            break;
        case LEGACY_ID:
        case LEGACY_LOCAL_ID:
        case LEGACY_GLOBAL_ID:
            raw->id = hash_mix(field.id, field.number);
            break;
        case LEGACY_SCOPE:
            raw->scope = field.bytes;
            break;
        case LEGACY_PID:
            raw->pid = field.number;
            raw->has_pid = true;
            break;
        case LEGACY_TID:
            raw->tid = field.number;
            raw->has_tid = true;
            break;
        default:
            break;
        }
    }
}

/* Flows are read once the event's thread and time are known. */
static void read_event(struct proto event, struct raw_event *raw)
{
    struct proto_field field;
    *raw = (struct raw_event){.absolute_us = -1};
    while (proto_next(&event, &field)) {
        switch (field.id) {
        case EVENT_DELTA_US:
            raw->delta_us = field.number <= MOST_US ? (int64_t)field.number : 0;
            break;
        case EVENT_ABSOLUTE_US:
            raw->absolute_us = field.number <= MOST_US ? (int64_t)field.number : -1;
            break;
        case EVENT_CATEGORY_IIDS:
            raw->category_iid = field.number;
            break;
        case EVENT_CATEGORIES:
            raw->category = field.bytes;
            break;
        case EVENT_TYPE:
            raw->type = field.number;
            break;
        case EVENT_NAME_IID:
            raw->name_iid = field.number;
            break;
        case EVENT_NAME:
            raw->name = field.bytes;
            break;
        case EVENT_TRACK:
            raw->track = field.number;
            raw->has_track = true;
            break;
        case EVENT_LEGACY:
            if (field.type == PROTO_BYTES)
                read_legacy(field.bytes, raw);
            break;
        default:
            break;
        }
    }
}

/* If times are relative, the time of any packet counts. */
static void take_time(const struct tracks *t, struct sequence *sequence, struct packet *packet)
{
    uint64_t clock = packet->has_clock ? packet->clock : sequence->clock;
    if (packet->has_time &&
        !clocks_trace_ns(&t->clocks, &sequence->clocks, clock, packet->time, &packet->ns))
        packet->ns = -1;
}

/* Returns false if the event has no valid time. */
static bool time_of(struct tracks *t, struct sequence *sequence, const struct packet *packet,
                    const struct raw_event *raw, int64_t *ns)
{
    *ns = packet->ns;
    if (packet->has_time)
        return *ns >= 0;
    if (raw->absolute_us < 0 && sequence->thread == 0)
        return false;
    if (raw->absolute_us < 0 && sequence->time_us <= MOST_US - raw->delta_us)
        sequence->time_us += raw->delta_us;
    int64_t us = raw->absolute_us < 0 ? sequence->time_us : raw->absolute_us;
    return clocks_trace_ns(&t->clocks, &sequence->clocks, CLOCK_MONOTONIC_ID, (uint64_t)us * 1000,
                           ns) &&
           *ns >= 0;
}

/* Returns the index + 1 of the thread that writes the sequence; 0: not known. */
static uint32_t writer_of(struct tracks *t, const struct sequence *sequence)
{
    const struct track *track = sequence->has_track ? track_of(t, sequence->track) : NULL;
    return track && track->thread ? track->thread : sequence->thread;
}

/* An event belongs to a thread, and is on its track; or, for a task, on another track. */
struct place {
    uint32_t thread;
    bool is_task;
    uint64_t track;
};

static struct place place_of(struct tracks *t, const struct sequence *sequence,
                             const struct raw_event *raw)
{
    uint32_t writer = writer_of(t, sequence);
    struct place place = {.track = raw->has_track ? raw->track : sequence->track};
    if (!raw->has_track && !sequence->has_track && sequence->thread) {
        place.thread = sequence->thread - 1;
        return place;
    }
    const struct track *track = track_of(t, place.track);
    if (!track)
        return place;
    place.is_task = !track->thread && writer;
    place.thread = track->thread ? track->thread - 1
                   : writer      ? writer - 1
                                 : own_thread(t, track, place.track);
    return place;
}

static const char *text_of(struct tracks *t, const struct proto *text, const struct idmap *interned,
                           uint64_t iid)
{
    const char *known = is_part(text) ? keep(t, text) : idmap_find(interned, iid);
    return known ? known : "";
}

/* Passes on the event's flows: each links it to the previous event with the same ID. */
static void put_flows(struct tracks *t, struct proto event, const struct span_event *at)
{
    struct proto_field field;
    struct span_event flow = *at;
    while (proto_next(&event, &field)) {
        bool is_flow = field.id == EVENT_FLOW_IDS || field.id == EVENT_FLOW_IDS_OLD;
        bool is_last =
            field.id == EVENT_TERMINATING_FLOW_IDS || field.id == EVENT_TERMINATING_FLOW_IDS_OLD;
        flow.phase = is_last ? SPAN_FLOW_LAST : SPAN_FLOW;
        flow.id = hash_mix(EVENT_FLOW_IDS, field.number);
        if ((is_flow || is_last) && field.type != PROTO_BYTES)
            import_spans_add(&t->spans, &flow);
    }
}

static void count_unknown(struct tracks *t, const char *name, uint64_t number)
{
    char text[48];
    int size = number > ' ' && number < 0x7f
                   ? snprintf(text, sizeof text, "%s %c", name, (char)number)
                   : snprintf(text, sizeof text, "%s %llu", name, (unsigned long long)number);
    import_count_unknown(t->spans.stats, (trail_string){text, (size_t)size});
}

/* Passes on an event of a type: a slice of a thread, or of another track. */
static void put_typed(struct tracks *t, const struct raw_event *raw, struct place place,
                      struct span_event *event)
{
    static const uint8_t phases[2][4] = {
        {0, SPAN_BEGIN, SPAN_END, SPAN_INSTANT},
        {0, SPAN_ASYNC_BEGIN, SPAN_ASYNC_END, SPAN_INSTANT},
    };
    event->phase = phases[place.is_task][raw->type];
    event->id = hash_mix(EVENT_TRACK, place.track);
    import_spans_add(&t->spans, event);
}

/* Passes on an event whose meaning is a letter; docs/importing.md has the same rows. */
static void put_legacy(struct tracks *t, const struct raw_event *raw, const char *category,
                       struct span_event *event)
{
    const struct span_thread *thread = &t->spans.threads[event->thread];
    const struct phase_letter *letter = phase_of_letter(raw->phase);
    if (!letter) {
        count_unknown(t, "track event, phase", raw->phase);
        return;
    }
    if (raw->has_tid || raw->has_pid)
        event->thread = import_spans_thread(&t->spans, raw->has_pid ? raw->pid : thread->pid,
                                            raw->has_tid ? raw->tid : thread->tid);
    event->phase = letter->phase;
    event->duration_ns = raw->duration_us <= MOST_US ? (int64_t)raw->duration_us * 1000 : 0;
    event->id = hash_mix(hash_bytes(category, strlen(category)), raw->id);
    if (is_part(&raw->scope))
        event->id = hash_mix(event->id, hash_bytes(raw->scope.at, size_of(&raw->scope)));
    if (letter->by_name)
        event->id = hash_mix(event->id, hash_bytes(event->name, strlen(event->name)));
    import_spans_add(&t->spans, event);
}

static void take_event(struct tracks *t, struct sequence *sequence, const struct packet *packet)
{
    struct raw_event raw;
    struct span_event event = {0};
    read_event(packet->event, &raw);
    if (!time_of(t, sequence, packet, &raw, &event.time_ns)) {
        import_count_bad(t->spans.stats);
        return;
    }
    if (raw.type > TYPE_INSTANT) {
        count_unknown(t, "track event, type", raw.type);
        return;
    }
    struct place place = place_of(t, sequence, &raw);
    if (t->spans.failed)
        return;
    event.thread = place.thread;
    event.name = text_of(t, &raw.name, &sequence->names, raw.name_iid);
    if (raw.type == TYPE_UNSPECIFIED)
        put_legacy(t, &raw, text_of(t, &raw.category, &sequence->categories, raw.category_iid),
                   &event);
    else
        put_typed(t, &raw, place, &event);
    put_flows(t, packet->event, &event);
}

/* MARK: Packets */

void tracks_learn(struct tracks *t, struct proto packet)
{
    struct packet parts;
    read_packet(packet, &parts);
    if (is_part(&parts.track))
        learn_track(t, parts.track);
    if (is_part(&parts.clocks))
        clocks_take(&t->clocks, parts.clocks);
}

void tracks_learnt(struct tracks *t)
{
    clocks_sort(&t->clocks);
}

void tracks_packet(struct tracks *t, struct proto packet)
{
    struct packet parts;
    read_packet(packet, &parts);
    if (parts.sequence == 0 && !is_part(&parts.event))
        return;
    struct sequence *sequence = sequence_of(t, parts.sequence);
    if (!sequence)
        return;
    take_state(t, sequence, &parts);
    take_time(t, sequence, &parts);
    if (is_part(&parts.event))
        take_event(t, sequence, &parts);
}

bool tracks_mean(struct tracks *t, bool has_states)
{
    t->spans.has_states = has_states;
    if (!t->spans.failed && !t->clocks.failed)
        import_spans_mean(&t->spans);
    return !t->spans.failed && !t->clocks.failed;
}

bool tracks_init(struct tracks *t, struct import_model *model)
{
    *t = (struct tracks){
        .tracks = OBJECTS_OF(struct track),
        .sequences = OBJECTS_OF(struct sequence),
    };
    return import_spans_init(&t->spans, model);
}

void tracks_free(struct tracks *t)
{
    IDMAP_VALUES(struct sequence, sequence, &t->sequences.map) {
        idmap_free(&sequence->names);
        idmap_free(&sequence->categories);
        free(sequence->clocks.items);
    }
    objects_free(&t->sequences);
    objects_free(&t->tracks);
    clocks_free(&t->clocks);
    import_spans_free(&t->spans);
}
