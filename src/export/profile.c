/*
 * Profiles as text: folded stacks, speedscope's JSON, and a JSON with all fields.
 */
#include "export/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/json.h"
#include "base/out.h"
#include "base/utf8.h"

struct text_profile {
    const trail_analysis *analysis;
    const trail_profile *profile;
    struct out out;
};

struct profile_words profile_words(trail_profile_type type)
{
    static const struct profile_words words[TRAIL_PROFILES] = {
        [TRAIL_PROFILE_NET] = {"contentions", "delay"},
        [TRAIL_PROFILE_SYNC] = {"contentions", "delay"},
        [TRAIL_PROFILE_SYSCALL] = {"contentions", "delay"},
        [TRAIL_PROFILE_SCHED] = {"contentions", "delay"},
        [TRAIL_PROFILE_CPU] = {"samples", NULL},
        [TRAIL_PROFILE_RUNNING] = {"spans", "running"},
        [TRAIL_PROFILE_OFFCPU] = {"waits", "delay"},
    };
    return words[type];
}

/* Returns the value of a sample in formats that have only one. */
static uint64_t value_of(const trail_profile *profile, uint64_t count, int64_t ns)
{
    return profile_words(profile->type).time ? (uint64_t)ns : count;
}

/* Returns the name of a frame's function, or else its address, written into `buf` of 24 bytes. */
static trail_string frame_name(const struct text_profile *p, const trail_profile_frame *frame,
                               char *buf)
{
    trail_string name = trail_analysis_text(p->analysis, frame->function);
    if (name.size > 0)
        return name;
    int size =
        frame->pc ? snprintf(buf, 24, "0x%" PRIx64, frame->pc) : snprintf(buf, 24, "(unknown)");
    return (trail_string){buf, (size_t)size};
}

/* MARK: Folded stacks */

/* Writes UTF-8; the separators of frames and lines are replaced. */
static void put_folded_name(struct out *out, trail_string name)
{
    const uint8_t *at = (const uint8_t *)name.data, *end = at + name.size;
    while (at < end) {
        uint32_t rune;
        unsigned size = utf8_decode(at, end, &rune);
        if (size == 0)
            out_str(out, "\xef\xbf\xbd");
        else if (*at == ';')
            out_char(out, ':');
        else if (*at < 0x20 || *at == 0x7f)
            out_char(out, ' ');
        else
            out_bytes(out, at, size);
        at += size ? size : 1;
    }
}

static void write_folded(struct text_profile *p)
{
    struct out *out = &p->out;
    for (size_t i = 0; i < p->profile->sample_count; i++) {
        const trail_profile_sample *sample = &p->profile->samples[i];
        char buf[24];
        for (uint32_t n = sample->frame_count; n-- > 0;) {
            put_folded_name(out, frame_name(p, &p->profile->frames[sample->frames[n]], buf));
            if (n > 0)
                out_char(out, ';');
        }
        if (sample->frame_count == 0)
            out_str(out, "(no stack)");
        out_char(out, ' ');
        out_u64(out, value_of(p->profile, sample->count, sample->ns));
        out_char(out, '\n');
    }
}

/* MARK: JSON */

static void put_json_frame(struct text_profile *p, const trail_profile_frame *frame, bool pc)
{
    struct out *out = &p->out;
    trail_string file = trail_analysis_text(p->analysis, frame->file);
    char buf[24];
    out_str(out, "{\"name\":");
    (void)json_put_text(out, pc ? trail_analysis_text(p->analysis, frame->function)
                                : frame_name(p, frame, buf));
    if (file.size > 0 || pc) {
        out_str(out, ",\"file\":");
        (void)json_put_text(out, file);
        out_str(out, ",\"line\":");
        out_u64(out, frame->line);
    }
    if (pc)
        out_format(out, ",\"pc\":\"0x%" PRIx64 "\"", frame->pc);
    out_char(out, '}');
}

static void put_json_frames(struct text_profile *p, bool pc)
{
    for (size_t i = 0; i < p->profile->frame_count; i++) {
        if (i > 0)
            out_str(&p->out, ",\n");
        put_json_frame(p, &p->profile->frames[i], pc);
    }
}

/* Format: speedscope.app/file-format-schema.json, a "sampled" profile with root-first stacks. */
static void write_speedscope(struct text_profile *p)
{
    const trail_profile *profile = p->profile;
    struct out *out = &p->out;
    bool times = profile_words(profile->type).time != NULL;
    const char *name = trail_profile_type_name(profile->type);
    out_str(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
                 "\"exporter\":\"trail\",\"activeProfileIndex\":0,\"shared\":{\"frames\":[");
    put_json_frames(p, false);
    out_format(out, "]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":\"%s\",\"unit\":\"%s\",",
               name, times ? "nanoseconds" : "none");
    out_str(out, "\"startValue\":0,\"endValue\":");
    out_u64(out, value_of(profile, profile->count, profile->ns));
    out_str(out, ",\n\"samples\":[");
    for (size_t i = 0; i < profile->sample_count; i++) {
        const trail_profile_sample *sample = &profile->samples[i];
        out_str(out, i > 0 ? ",\n[" : "[");
        for (uint32_t n = sample->frame_count; n-- > 0;) {
            out_u64(out, sample->frames[n]);
            if (n > 0)
                out_char(out, ',');
        }
        out_char(out, ']');
    }
    out_str(out, "],\n\"weights\":[");
    for (size_t i = 0; i < profile->sample_count; i++) {
        const trail_profile_sample *sample = &profile->samples[i];
        if (i > 0)
            out_char(out, ',');
        out_u64(out, value_of(profile, sample->count, sample->ns));
    }
    out_str(out, "]}]}\n");
}

static void put_json_sample(struct text_profile *p, const trail_profile_sample *sample)
{
    struct out *out = &p->out;
    out_format(out, "{\"count\":%" PRIu64, sample->count);
    if (profile_words(p->profile->type).time)
        out_format(out, ",\"ns\":%" PRId64, sample->ns);
    if (p->profile->type == TRAIL_PROFILE_OFFCPU)
        out_format(out, ",\"own_frames\":%" PRIu32, sample->own_frames);
    out_str(out, ",\"stack\":[");
    for (uint32_t i = 0; i < sample->frame_count; i++) {
        if (i > 0)
            out_char(out, ',');
        out_u64(out, sample->frames[i]);
    }
    out_str(out, "]}");
}

static void write_json(struct text_profile *p)
{
    const trail_profile *profile = p->profile;
    struct out *out = &p->out;
    out_format(out, "{\"type\":\"%s\",\"count\":%" PRIu64, trail_profile_type_name(profile->type),
               profile->count);
    if (profile_words(profile->type).time)
        out_format(out, ",\"ns\":%" PRId64, profile->ns);
    out_str(out, ",\n\"frames\":[");
    put_json_frames(p, true);
    out_str(out, "],\n\"samples\":[");
    for (size_t i = 0; i < profile->sample_count; i++) {
        if (i > 0)
            out_str(out, ",\n");
        put_json_sample(p, &profile->samples[i]);
    }
    out_str(out, "]}\n");
}

int trail_profile_write(const trail_analysis *analysis, const trail_profile *profile,
                        trail_profile_format format, const trail_sink *sink, trail_error *err)
{
    struct text_profile p = {.analysis = analysis, .profile = profile};
    if (format == TRAIL_PROFILE_AS_PPROF)
        return profile_write_pprof(analysis, profile, sink, err);
    if (!out_init(&p.out, sink->write, sink->context))
        return error_no_memory(err);
    if (format == TRAIL_PROFILE_AS_FOLDED)
        write_folded(&p);
    else if (format == TRAIL_PROFILE_AS_SPEEDSCOPE)
        write_speedscope(&p);
    else
        write_json(&p);
    return out_finish(&p.out, err);
}
