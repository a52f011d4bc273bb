/*
 * What options of the command need that a page cannot ask for (see serve/command_line.c), so that
 * no ELF reader and no compressor is in the WebAssembly.
 */
#include "base/error.h"
#include "cli/symbols.h"
#include "export/profile.h"

/* --binary */
struct symbols *symbols_open(const char *path, const char *wanted, enum symbols_detail detail,
                             trail_error *err)
{
    (void)wanted, (void)detail;
    (void)error_set(err, TRAIL_USAGE, "%s: no program can be read here", path);
    return NULL;
}

void symbols_close(struct symbols *symbols)
{
    (void)symbols;
}

bool symbols_find(void *context, uint64_t pc, const char **function, const char **file,
                  uint64_t *line)
{
    (void)context, (void)pc, (void)function, (void)file, (void)line;
    return false;
}

/* --format=pprof */
int profile_write_pprof(const trail_analysis *analysis, const trail_profile *profile,
                        const trail_sink *sink, trail_error *err)
{
    (void)analysis, (void)profile, (void)sink;
    return error_set(err, TRAIL_USAGE, "no pprof file can be written here");
}
