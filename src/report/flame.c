#include "report/flame.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/idmap.h"
#include "base/order.h"
#include "base/share.h"
#include "base/text.h"
#include "report/drawn.h"
#include "report/html.h"
#include "report/overview.h"
#include "words/wait_classes.h"

/*
 * Limits: the smallest share of a drawn frame, the depth, and the number of frames. Narrow and deep
 * frames would make the graph high and mostly empty.
 */
static const struct {
    unsigned depth; /* narrower frames are left out */
    double share;
} least_shares[] = {{10, 1.0 / 1500}, {20, 1.0 / 300}, {64, 1.0 / 100}};

enum { MOST_DEPTH = 64, MOST_FRAMES = 4000, MOST_BYTES = 1200000, MOST_OWN = 15 };
enum { NAME_MOST = 200, FRAME_BYTES = 280 };

struct frame {
    trail_name function;
    uint64_t pc; /* if the function has no name */
    int64_t value, own;
    uint32_t child, next; /* indexes; 0: none, because the root is never a child */
    bool reason;          /* not a function but the reason of a wait */
};

struct tree {
    const trail_analysis *answers;
    const trail_profile *profile;
    const struct flame_form *form;
    struct frame *frames; /* the first is the root */
    size_t count, capacity;
    struct idmap children; /* parent and function -> index + 1 */
    struct out *out;
    size_t drawn, bytes; /* drawn frames, and their approximate size */
};

/* MARK: The tree */

/* Returns the child of `parent` for that frame of the profile; 0 if out of memory. */
static uint32_t child_of(struct tree *tree, uint32_t parent, const trail_profile_frame *frame,
                         bool reason)
{
    uint64_t what = frame->function ? frame->function : (uint32_t)(frame->pc ^ frame->pc >> 32);
    uint64_t key = (uint64_t)parent << 32 ^ what ^ (uint64_t)(frame->function == 0) << 63;
    uintptr_t known = (uintptr_t)idmap_find(&tree->children, key);
    if (known)
        return (uint32_t)known;
    if (tree->count > INT32_MAX || !GROW(tree->frames, tree->capacity, tree->count + 1))
        return 0;
    uint32_t at = (uint32_t)tree->count;
    if (!idmap_put(&tree->children, key, (void *)(uintptr_t)at))
        return 0;
    tree->count++;
    tree->frames[at] = (struct frame){
        .function = frame->function,
        .pc = frame->pc,
        .next = tree->frames[parent].child,
        .reason = reason,
    };
    tree->frames[parent].child = at;
    return at;
}

static bool add_sample(struct tree *tree, const trail_profile_sample *sample)
{
    const trail_profile_frame *frames = tree->profile->frames;
    int64_t value = tree->form->counts ? (int64_t)sample->count : sample->ns;
    uint32_t at = 0, last = tree->form->by_reason ? sample->own_frames : 0;
    if (value <= 0)
        return true;
    tree->frames[0].value += value;
    if (last > 0) {
        at = child_of(tree, 0, &frames[sample->frames[last - 1]], true);
        if (at == 0)
            return false;
        tree->frames[at].value += value;
    }
    for (uint32_t i = sample->frame_count; i > last; i--) {
        at = child_of(tree, at, &frames[sample->frames[i - 1]], false);
        if (at == 0)
            return false;
        tree->frames[at].value += value;
    }
    tree->frames[at].own += value;
    return true;
}

static bool build(struct tree *tree)
{
    if (!GROW(tree->frames, tree->capacity, 1))
        return false;
    tree->frames[tree->count++] = (struct frame){0};
    for (size_t i = 0; i < tree->profile->sample_count; i++)
        if (!add_sample(tree, &tree->profile->samples[i]))
            return false;
    return true;
}

/* MARK: Drawing */

/* As in the page: "example.com/a/b.(*T).Do" is "b.(*T).Do". */
static trail_string base_name(trail_string name)
{
    size_t begin = 0;
    for (size_t i = 0; i < name.size && !strchr("([<{ ", name.data[i]); i++)
        if (name.data[i] == '/')
            begin = i + 1;
    return (trail_string){name.data + begin, name.size - begin};
}

static void put_name(const struct tree *tree, const struct frame *frame, bool whole)
{
    trail_string text = trail_analysis_text(tree->answers, frame->function);
    if (!whole)
        text = base_name(text);
    if (frame == tree->frames)
        out_str(tree->out, "all");
    else if (text.size > 0)
        html_text(tree->out,
                  (trail_string){text.data, text.size < NAME_MOST ? text.size : NAME_MOST});
    else if (frame->pc)
        out_format(tree->out, "0x%llx", (unsigned long long)frame->pc);
    else
        out_str(tree->out, "(unknown)");
}

static void put_value(const struct tree *tree, int64_t value)
{
    if (!tree->form->counts) {
        html_duration(tree->out, value);
        return;
    }
    html_number(tree->out, (uint64_t)value);
    out_str(tree->out, value == 1 ? " sample" : " samples");
}

/* What the page's flame graphs colour by: the package of a name without its path, or else all of
 * that. */
static trail_string tint_name(trail_string name)
{
    trail_string base = base_name(name);
    const char *dot = base.size > 0 ? memchr(base.data, '.', base.size) : NULL;
    return (trail_string){base.data, dot ? (size_t)(dot - base.data) : base.size};
}

/* The page's hue of a name (web/src/colors.ts): FNV-1a. */
static unsigned hue_of(trail_string name)
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ (unsigned char)name.data[i]) * 16777619U;
    return hash % 360;
}

/*
 * A reason has the colour of its class of waits: of "[mutex cache_mu]" the first word is the kind.
 */
static void put_colour(const struct tree *tree, const struct frame *frame)
{
    trail_string text = trail_analysis_text(tree->answers, frame->function);
    if (!frame->reason || text.size < 2) {
        if (frame == tree->frames)
            text = text_from("all");
        out_format(tree->out, "fill=\"hsl(%u var(--name-tint))\"", hue_of(tint_name(text)));
        return;
    }
    trail_string reason = {text.data + 1, text.size - 2};
    enum wait_class class = wait_class_of(reason);
    const char *space = memchr(reason.data, ' ', reason.size);
    if (class == WAIT_CLASS_UNKNOWN && space)
        class = wait_class_of((trail_string){reason.data, (size_t)(space - reason.data)});
    out_format(tree->out, "class=\"%s\"", drawn_wash_class(class));
}

/* The approximate number of bytes that the frame's name takes. */
static size_t name_bytes(const struct tree *tree, const struct frame *frame)
{
    trail_string text = trail_analysis_text(tree->answers, frame->function);
    size_t bytes = 0;
    for (size_t i = 0; i < text.size && i < NAME_MOST; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bytes += strchr("<>&\"'", c) ? 6 : c >= 0x7f ? 3 : 1;
    }
    return bytes;
}

static void draw_frame(struct tree *tree, const struct frame *frame, double x, unsigned depth)
{
    double width = share_of(frame->value, tree->frames[0].value);
    struct out *out = tree->out;
    out_str(out, "<svg x=\"");
    html_coordinate(out, 100 * x);
    out_str(out, "%\" width=\"");
    html_coordinate(out, 100 * width);
    out_format(out, "%%\" y=\"%.1fem\" height=\"1.5em\" data-d=\"%u\"><title>", 1.5 * depth, depth);
    put_name(tree, frame, true);
    out_str(out, ": ");
    put_value(tree, frame->value);
    out_str(out, ", ");
    html_share(out, width);
    if (frame->own > 0 && frame->own < frame->value) {
        out_str(out, "; itself ");
        put_value(tree, frame->own);
    }
    out_str(out, "</title><rect ");
    put_colour(tree, frame);
    out_str(out, " width=\"100%\" height=\"100%\"/>");
    if (width > 0.015) {
        html_drawn_begin(out);
        put_name(tree, frame, false);
        html_drawn_end(out);
    }
    out_str(out, "</svg>\n");
    tree->drawn++;
    tree->bytes += FRAME_BYTES + (width > 0.015 ? 2 : 1) * name_bytes(tree, frame);
}

/* `depth` is below MOST_DEPTH. */
static bool is_drawn(const struct tree *tree, uint32_t at, unsigned depth)
{
    size_t step = 0;
    while (depth >= least_shares[step].depth)
        step++;
    return share_of(tree->frames[at].value, tree->frames[0].value) >= least_shares[step].share;
}

/* Puts at most `most` of a frame's children into `list`, widest first. Returns their number. */
static size_t sorted_children(const struct tree *tree, uint32_t parent, unsigned depth,
                              uint32_t *list, size_t most)
{
    size_t count = 0;
    for (uint32_t at = tree->frames[parent].child; at; at = tree->frames[at].next) {
        int64_t value = tree->frames[at].value;
        if (!is_drawn(tree, at, depth))
            continue;
        size_t place = count < most ? count++ : most;
        while (place > 0 && tree->frames[list[place - 1]].value < value) {
            if (place < most)
                list[place] = list[place - 1];
            place--;
        }
        if (place < most)
            list[place] = at;
    }
    return count;
}

/* Returns the depth reached: at most MOST_DEPTH, which bounds the recursion. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static unsigned draw(struct tree *tree, uint32_t at, double x, unsigned depth)
{
    uint32_t list[128];
    unsigned deepest = depth;
    draw_frame(tree, &tree->frames[at], x, depth);
    if (depth + 1 >= MOST_DEPTH)
        return deepest;
    size_t count = sorted_children(tree, at, depth + 1, list, sizeof list / sizeof *list);
    for (size_t i = 0; i < count && tree->drawn < MOST_FRAMES && tree->bytes < MOST_BYTES; i++) {
        unsigned reached = draw(tree, list[i], x, depth + 1);
        deepest = reached > deepest ? reached : deepest;
        x += share_of(tree->frames[list[i]].value, tree->frames[0].value);
    }
    return deepest;
}

/* Returns the depth that will be drawn: the height is written before the content. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static unsigned depth_of(const struct tree *tree, uint32_t at, unsigned depth)
{
    unsigned deepest = depth;
    for (uint32_t i = tree->frames[at].child; i && depth + 1 < MOST_DEPTH;
         i = tree->frames[i].next) {
        if (!is_drawn(tree, i, depth + 1))
            continue;
        unsigned reached = depth_of(tree, i, depth + 1);
        deepest = reached > deepest ? reached : deepest;
    }
    return deepest;
}

/* MARK: The table beside it */

struct own {
    uint32_t frame; /* one frame of the function */
    int64_t own;
};

static int by_own(const void *a, const void *b)
{
    const struct own *x = a, *y = b;
    return ORDER(y->own, x->own) ?: ORDER(x->frame, y->frame);
}

/* Sums each function's own share over all its frames. */
static size_t sum_own(const struct tree *tree, struct own *list)
{
    struct idmap places = {0};
    size_t count = 0;
    for (size_t i = 1; i < tree->count; i++) {
        const struct frame *frame = &tree->frames[i];
        uint64_t key = frame->function ? frame->function : frame->pc ^ UINT64_C(1) << 63;
        struct own *own = idmap_find(&places, key);
        if (frame->own == 0)
            continue;
        if (!own) {
            own = &list[count++];
            *own = (struct own){.frame = (uint32_t)i};
            if (!idmap_put(&places, key, own)) {
                overview_lacks();
                break;
            }
        }
        own->own += frame->own;
    }
    idmap_free(&places);
    if (count > 1)
        qsort(list, count, sizeof *list, by_own);
    return count;
}

static bool put_own(const struct tree *tree)
{
    struct own *list = calloc(tree->count, sizeof *list);
    struct html_table table;
    if (!list)
        return false;
    size_t count = sum_own(tree, list);
    html_table_begin(&table, tree->out, tree->form->title,
                     tree->form->counts ? "function< samples> share> |"
                                        : "function< time> share> |");
    for (size_t i = 0; i < count && i < MOST_OWN; i++) {
        const struct frame *frame = &tree->frames[list[i].frame];
        trail_string text = trail_analysis_text(tree->answers, frame->function);
        html_cell_text(&table, text.size ? text : text_from("(unknown)"));
        if (tree->form->counts)
            html_cell_number(&table, (uint64_t)list[i].own);
        else
            html_cell_duration(&table, list[i].own);
        html_cell_share(&table, share_of(list[i].own, tree->frames[0].value));
        html_cell_bar(&table, tree->form->by_reason ? "waiting" : "running",
                      share_of(list[i].own, tree->frames[0].value));
    }
    html_table_end(&table);
    free(list);
    return true;
}

static void put_graph(struct tree *tree)
{
    struct out *out = tree->out;
    unsigned depth = depth_of(tree, 0, 0);
    out_format(out, "<figure class=\"flame\" id=\"%s\" data-total=\"%lld\"><figcaption>",
               tree->form->name, (long long)tree->frames[0].value);
    html_word(out, tree->form->title);
    out_str(out, ": ");
    put_value(tree, tree->frames[0].value);
    out_format(out,
               " in all; the root is on top, a frame is as wide as its share. The table below has "
               "the functions with most of their own.</figcaption>\n<svg class=\"flames\" "
               "width=\"100%%\" height=\"%.1fem\" role=\"group\" aria-label=\"",
               1.5 * (depth + 1));
    html_word(out, tree->form->title);
    out_str(out, "\">\n");
    (void)draw(tree, 0, 0, 0);
    out_str(out, "</svg></figure>\n");
}

bool flame_write(const trail_analysis *answers, const trail_profile *profile,
                 const struct flame_form *form, struct out *out)
{
    struct tree tree = {.answers = answers, .profile = profile, .form = form, .out = out};
    bool good = build(&tree);
    if (good) {
        put_graph(&tree);
        good = put_own(&tree);
    }
    free(tree.frames);
    idmap_free(&tree.children);
    return good;
}
