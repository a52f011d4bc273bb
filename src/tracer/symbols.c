/* Names PCs by the loader or the host, once per PC and trace; `trail symbolize` can add more. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tracer/memory.h"
#include "tracer/tables.h"

/* An open hash table of PCs; PCs without a free slot are looked up again each time. */
#define CACHE_SIZE   4096
#define CACHE_PROBES 8

struct cached {
    uintptr_t pc;
    struct frame_name name;
};

static struct cached *cache;
static struct table texts; /* names made here */

/* Returns `module+0x1234`, for a PC without a symbol. */
static const char *place_in_module(const Dl_info *info, uintptr_t pc)
{
    const char *module = info->dli_fname, *slash = strrchr(module, '/');
    const struct table_entry *entry;
    char text[300];
    int size;
    if (slash)
        module = slash + 1;
    size = snprintf(text, sizeof text, "%.255s+0x%llx", module,
                    (unsigned long long)(pc - (uintptr_t)info->dli_fbase));
    texts.limit = SIZE_MAX;
    entry = table_put(&texts, text, (size_t)size + 1, table_hash_bytes(text, (size_t)size), NULL);
    return entry ? (const char *)entry->data : "";
}

static struct frame_name look_up(uintptr_t pc)
{
    struct frame_name name = {"", "", 0};
    trail_pc_name given = {0};
    Dl_info info;
    const trail_host *host = live_host();
    if (host->symbolize && host->symbolize(host->context, pc, &given)) {
        name.function = given.function ? given.function : "";
        name.file = given.file ? given.file : "";
        name.line = given.line;
        return name;
    }
    /* A return address; the call precedes it. */
    if (!dladdr((void *)(pc - 1), &info) || !info.dli_fname)
        return name;
    name.function = info.dli_sname ? info.dli_sname : place_in_module(&info, pc - 1);
    name.file = info.dli_fname;
    return name;
}

struct frame_name symbol_of(uintptr_t pc)
{
    size_t at = (size_t)(table_mix(0, pc) % CACHE_SIZE);
    /* The host's names are valid only until its next call. */
    if (live_host()->symbolize)
        return look_up(pc);
    if (!cache)
        cache = memory_map(CACHE_SIZE * sizeof *cache);
    for (size_t i = 0; cache && i < CACHE_PROBES; i++) {
        struct cached *slot = &cache[(at + i) % CACHE_SIZE];
        if (!slot->pc) {
            slot->name = look_up(pc);
            slot->pc = pc; /* 0 leaves the slot empty */
            return slot->name;
        }
        if (slot->pc == pc)
            return slot->name;
    }
    return look_up(pc);
}

void symbols_reset(void)
{
    if (cache)
        memory_unmap(cache, CACHE_SIZE * sizeof *cache);
    cache = NULL;
    table_free(&texts);
}
