/* Finds the stacks and files of page faults: see faults.h. */
#include "collect/faults.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/search.h"
#include "base/small_file.h"
#include "collect/parts.h"
#include "shm/mapping.h"

#define GOOD_FOR_NS 50000000 /* a file may be mapped at the same address later */
/* Reading the list takes at most a twentieth of a CPU, but where that is less than this. */
#define CHEAP_NS 1000000
#define RARELY   20

static void add_range(struct collect *c, const struct mapping *m)
{
    struct faults *f = &c->faults;
    if (!GROW(f->ranges, f->room, f->count + 1)) {
        collect_no_memory(c);
        return;
    }
    f->ranges[f->count++] = (struct mapped_range){
        m->start, m->end, *m->path == '/' ? descriptors_keep(c, m->path) : NULL};
}

/* Of a process that has ended, the last list stays. */
static void read_ranges(struct collect *c)
{
    const uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    size_t before = c->faults.count;
    struct mapping m;
    c->faults.read_ns = (int64_t)clock_ns(CLOCK_MONOTONIC);
    if (!c->options.process.pid)
        return;
    c->faults.count = 0;
    SMALL_FILE_LINES(lines, "/proc/%d/maps", (int)c->options.process.pid)
        if (mapping_read(lines.text, &m))
            add_range(c, &m);
    if (c->faults.count == 0)
        c->faults.count = before;
    int64_t took_ns = (int64_t)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
    c->faults.due_ns = c->faults.read_ns + (took_ns > CHEAP_NS ? RARELY * took_ns : 0);
}

static const struct mapped_range *find_range(const struct faults *f, uint64_t address)
{
    size_t behind = SEARCH(i, 0, f->count, f->ranges[i].start <= address);
    return behind && address < f->ranges[behind - 1].end ? &f->ranges[behind - 1] : NULL;
}

/* What was mapped after the list was read is not in it; one reading serves all earlier faults. */
static const char *file_at(struct collect *c, uint64_t address, int64_t ns)
{
    const struct mapped_range *range = find_range(&c->faults, address);
    int64_t age_ns = ns - c->faults.read_ns;
    if (ns >= c->faults.due_ns && (age_ns > GOOD_FOR_NS || (age_ns >= 0 && !range))) {
        read_ranges(c);
        range = find_range(&c->faults, address);
    }
    return range ? range->file : NULL;
}

struct fault faults_take(struct collect *c, const struct switch_record *record)
{
    uint64_t pcs[SHM_STACK_FRAMES];
    size_t count = record->sample ? code_walk(c, record->sample, pcs) : 0;
    return (struct fault){
        .stack = count ? area_add_stack(c->area, pcs, count) : 0,
        .file = file_at(c, record->address, record->ns),
    };
}

void faults_dispose(struct collect *c)
{
    free(c->faults.ranges);
}
