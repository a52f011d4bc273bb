/* See table_parquet.h. */
#include "commands/table_parquet.h"

#include <malloc.h>
#include <stdlib.h>

#include "ui/cli.h"

int table_parquet_open(struct table_parquet *to, int table, uint32_t wanted, char *path,
                       bool with_folder)
{
    int code = table_files_open(&to->files, table, path, with_folder);
    if (code != EXIT_GOOD)
        return code;
    trail_sink sink = output_sink(&to->files.outputs[table]);
    to->wanted[table] = wanted;
    to->parquet[table] = parquet_open(trail_table_get((trail_table_id)table), wanted, &sink);
    return to->parquet[table] ? EXIT_GOOD : exit_no_memory();
}

static bool take_rows(void *context, size_t thread, const trail_rows *rows)
{
    struct table_parquet *to = context;
    struct parquet_rows **own = &to->rows[thread][rows->table];
    if (!*own)
        *own = parquet_rows_new(to->parquet[rows->table]);
    bool good = *own && parquet_rows_add(*own, rows);
    if (!good)
        to->failed = true;
    return good;
}

/* Keeps freed memory for the next trace: the kernel clears each page that it hands out again. */
static void keep_memory(void)
{
#ifdef M_TRIM_THRESHOLD
    (void)mallopt(M_TRIM_THRESHOLD, 256 << 20);
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
#endif
}

/* Returns whether all traces were read; otherwise the reason has been reported, unless rows were
 * not taken. */
static bool collect_rows(struct table_parquet *to, struct traces *traces)
{
    if (traces->count > 1)
        keep_memory(); /* before there are other threads */
    to->threads = read_all_threads(traces);
    to->rows = calloc(to->threads, sizeof *to->rows);
    if (!to->rows)
        to->failed = true;
    return to->rows && read_all(traces, to->threads, to->wanted, take_rows, to);
}

/* Returns false if rows are missing. */
static bool end_rows(struct table_parquet *to, bool keep)
{
    bool good = true;
    for (size_t i = 0; to->rows && i < to->threads; i++)
        for (int table = 0; table < TRAIL_TABLES; table++)
            if (to->rows[i][table])
                good = parquet_rows_end(to->rows[i][table], keep && good) && good;
    free((void *)to->rows);
    return good;
}

/* Returns false if a file is incomplete. */
static bool end_tables(struct table_parquet *to, bool keep)
{
    trail_error err;
    bool good = true;
    for (int i = 0; i < TRAIL_TABLES; i++)
        if (to->parquet[i])
            good = parquet_close(to->parquet[i], keep, &err) == 0 && good;
    return good;
}

int table_parquet_write(struct table_parquet *to, struct traces *traces, bool is_whole, int code)
{
    bool read = code == EXIT_GOOD && collect_rows(to, traces);
    bool keep = read && !(is_whole && traces->code != EXIT_GOOD);
    bool made = end_rows(to, keep);
    made = end_tables(to, keep && made) && made;
    bool lost = to->failed || (keep && !made);
    if (code == EXIT_GOOD && lost && !table_files_lost(&to->files))
        code = exit_no_memory();
    if (code == EXIT_GOOD && !keep && !lost)
        code = EXIT_INOUT;
    return table_files_close(&to->files, keep && made, code);
}
