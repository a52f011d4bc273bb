/*
 * The pass with one part that has none of the functions: the contract of analyze/part.h. The pass
 * is compiled into this test, with the list of parts in one_part/.
 */
#include <stdint.h>

#include "../lib/unit.h"
#include "analyze/pass.c" /* NOLINT(bugprone-suspicious-include) */

const struct analysis_part bare_part = {
    .what = TRAIL_ANALYZE_GC,
    .size = sizeof(int),
    .kinds = PART_KIND(SYNC),
};

static const char *path;

TEST(a_part_without_functions_is_left_alone)
{
    for (unsigned window = 0; window < 2; window++) {
        const trail_analysis_options options = {.what = TRAIL_ANALYZE_GC, .has_from = window};
        trail_error err;
        trail_source *source = trail_source_open_path(path, &err);
        assert_non_null(source);
        trail_reader *reader = trail_reader_open(source, NULL, &err);
        assert_non_null(reader);
        trail_analysis *analysis = trail_analysis_open(reader, &options, &err);
        assert_non_null(analysis);
        assert_non_null(analysis_object(analysis, &bare_part));
        assert_int_equal(trail_analysis_run(analysis, reader, &err), 0);
        trail_analysis_close(analysis);
        trail_reader_close(reader);
        trail_source_close(source);
    }
}

/* The argument is a trace. */
int main(int argc, char **argv)
{
    path = argc > 1 ? argv[1] : "";
    return run_all_tests(NULL, NULL);
}
