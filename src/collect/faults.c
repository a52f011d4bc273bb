/* Finds the stacks and files of page faults: see faults.h. */
#include "collect/faults.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/search.h"
#include "base/small_file.h"
#include "collect/parts.h"
#include "shm/mapping.h"

/* The list of mapped files is read again if it lacks an address and is older than this. */
#define READ_AGAIN_NS 50000000
#define GOOD_FOR_NS   1000000000

static void add_range(struct collect *c, const struct mapping *m)
{
    struct faults *f = &c->faults;
    const char *file = descriptors_keep(c, m->path);
    if (!file)
        return;
    if (!GROW(f->ranges, f->room, f->count + 1)) {
        collect_no_memory(c);
        return;
    }
    f->ranges[f->count++] = (struct mapped_range){m->start, m->end, file};
}

static void read_ranges(struct collect *c, int64_t now_ns)
{
    struct mapping m;
    c->faults.count = 0;
    c->faults.read_ns = now_ns;
    if (!c->options.process.pid)
        return;
    SMALL_FILE_LINES(lines, "/proc/%d/maps", (int)c->options.process.pid)
        if (mapping_read(lines.text, &m) && *m.path == '/')
            add_range(c, &m);
}

static const char *find_file(const struct faults *f, uint64_t address)
{
    size_t behind = SEARCH(i, 0, f->count, f->ranges[i].start <= address);
    return behind && address < f->ranges[behind - 1].end ? f->ranges[behind - 1].file : NULL;
}

static const char *file_at(struct collect *c, uint64_t address)
{
    int64_t now_ns = (int64_t)clock_ns(CLOCK_MONOTONIC), age_ns = now_ns - c->faults.read_ns;
    const char *file = find_file(&c->faults, address);
    if (age_ns < READ_AGAIN_NS || (file && age_ns < GOOD_FOR_NS))
        return file;
    read_ranges(c, now_ns);
    return find_file(&c->faults, address);
}

struct fault faults_take(struct collect *c, const struct switch_record *record)
{
    uint64_t pcs[SHM_STACK_FRAMES];
    size_t count = record->sample ? code_walk(c, record->sample, pcs) : 0;
    return (struct fault){
        .stack = count ? area_add_stack(c->area, pcs, count) : 0,
        .file = file_at(c, record->address),
    };
}

void faults_dispose(struct collect *c)
{
    free(c->faults.ranges);
}
