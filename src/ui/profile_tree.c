/* Prints a profile as a tree. */
#include "ui/profile_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "ui/empty.h"
#include "ui/show.h"
#include "ui/table.h"

/* A function below its callers. Calls from several lines are merged. */
struct node {
    trail_name function;
    uint64_t pc; /* for functions without a name */
    uint64_t count;
    int64_t ns;
    size_t child, next; /* indexes in the tree; 0: none */
};

struct tree {
    const trail_analysis *analysis;
    const trail_profile *profile;
    struct node *nodes; /* the first is the root */
    size_t count, capacity;
    double least;
    bool times;
    unsigned left_out;
};

static size_t add_node(struct tree *tree, const struct node *node)
{
    if (!GROW(tree->nodes, tree->capacity, tree->count + 1))
        return 0;
    tree->nodes[tree->count] = *node;
    return tree->count++;
}

/* Returns the child for that function; 0 if out of memory. */
static size_t child_of(struct tree *tree, size_t parent, const trail_profile_frame *frame)
{
    uint64_t pc = frame->function ? 0 : frame->pc;
    for (size_t i = tree->nodes[parent].child; i; i = tree->nodes[i].next)
        if (tree->nodes[i].function == frame->function && tree->nodes[i].pc == pc)
            return i;
    struct node node = {.function = frame->function, .pc = pc, .next = tree->nodes[parent].child};
    size_t made = add_node(tree, &node);
    if (made)
        tree->nodes[parent].child = made;
    return made;
}

static void add_values(struct node *node, const trail_profile_sample *sample)
{
    node->count += sample->count;
    node->ns = (int64_t)((uint64_t)node->ns + (uint64_t)sample->ns);
}

static bool build(struct tree *tree)
{
    static const struct node root;
    tree->count = 0;
    (void)add_node(tree, &root);
    if (tree->count == 0)
        return false;
    for (size_t i = 0; i < tree->profile->sample_count; i++) {
        const trail_profile_sample *sample = &tree->profile->samples[i];
        size_t at = 0;
        add_values(&tree->nodes[0], sample);
        for (uint32_t n = sample->frame_count; n-- > 0;) {
            at = child_of(tree, at, &tree->profile->frames[sample->frames[n]]);
            if (!at)
                return false;
            add_values(&tree->nodes[at], sample);
        }
    }
    return true;
}

static double weight(const struct tree *tree, const struct node *node)
{
    return tree->times ? (double)node->ns : (double)node->count;
}

/* Returns the heaviest child after `last` (0: the first), or 0. */
static size_t next_child(const struct tree *tree, const struct node *parent, size_t last)
{
    size_t best = 0;
    double most = last ? weight(tree, &tree->nodes[last]) : 0, found = -1;
    for (size_t i = parent->child; i; i = tree->nodes[i].next) {
        double w = weight(tree, &tree->nodes[i]);
        bool after = !last || w < most || (w == most && i < last);
        if (after && (w > found || (w == found && i > best))) {
            best = i;
            found = w;
        }
    }
    return best;
}

static void print_name(const struct tree *tree, const struct node *node)
{
    trail_string name = trail_analysis_text(tree->analysis, node->function);
    if (name.size == 0 && node->pc)
        printf("0x%" PRIx64, node->pc);
    else if (name.size == 0)
        printf("(unknown)");
    show_plain(name);
}

static void print_line(const struct tree *tree, const struct node *node, unsigned depth)
{
    char time[SHOW_SIZE], count[32];
    double whole = weight(tree, &tree->nodes[0]);
    double share = whole > 0 ? weight(tree, node) / whole * 100 : 0;
    printf("%6.1f %%  ", share);
    if (tree->times)
        printf("%s  ", show_right(time, 10, show_duration(time, node->ns)));
    printf("%10s  %*s", show_thousands(count, node->count), (int)(2 * depth), "");
    print_name(tree, node);
    putchar('\n');
}

/* Not recursive, because stacks may be deep. `path` has room for the deepest. */
static void print_tree(struct tree *tree, size_t *path)
{
    unsigned depth = 0;
    path[0] = 0;
    double whole = weight(tree, &tree->nodes[0]);
    size_t last = 0;
    for (;;) {
        size_t at = next_child(tree, &tree->nodes[path[depth]], last);
        if (at && weight(tree, &tree->nodes[at]) < tree->least * whole) {
            tree->left_out++;
            at = 0;
        }
        if (at) {
            print_line(tree, &tree->nodes[at], depth);
            path[++depth] = at;
            last = 0;
        } else if (depth > 0) {
            last = path[depth--];
        } else {
            return;
        }
    }
}

bool profile_tree(const trail_analysis *analysis, const trail_profile *profile, double least)
{
    struct tree tree = {
        .analysis = analysis,
        .profile = profile,
        .least = least,
        .times = profile->type != TRAIL_PROFILE_CPU,
    };
    uint32_t deepest = 0;
    char time[SHOW_SIZE], count[32];
    for (size_t i = 0; i < profile->sample_count; i++)
        if (profile->samples[i].frame_count > deepest)
            deepest = profile->samples[i].frame_count;
    size_t *path = calloc((size_t)deepest + 2, sizeof *path);
    bool good = path && build(&tree);
    if (good && profile->sample_count == 0) {
        empty_profile(profile->type);
    } else if (good) {
        printf("%s: %s%s%s in %zu stacks\n", trail_profile_type_name(profile->type),
               tree.times ? show_duration(time, profile->ns) : "", tree.times ? ", " : "",
               show_thousands(count, profile->count), profile->sample_count);
        print_tree(&tree, path);
        if (tree.left_out)
            printf("branches under %g %% are left out; --min=0 shows all\n", least * 100);
    }
    free(path);
    free(tree.nodes);
    return good;
}
