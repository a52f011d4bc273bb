/*
 * Small plots in a line of text: one column per slice of time, or per power of two of a duration.
 */
#pragma once

#include <trail/analyze.h>

enum { SPARK_WIDTH = 64 };

/* Prints one column: 0 is blank, any positive level is visible, 1 and more is full. */
void spark_put(double level);

/* Amounts per slice of `piece_ns`, covering `length_ns` in total. */
struct spark {
    const int64_t *ns;
    size_t count;
    int64_t piece_ns, length_ns;
};

/* Prints "|  .:#  |", at most SPARK_WIDTH columns, each relative to `most` times its duration. */
void spark_line(const struct spark *spark, double most);

/* Slices of equal length, one per column. */
struct spark_pieces {
    int64_t ns[SPARK_WIDTH];
    int64_t begin_ns, piece_ns, length_ns;
};

void spark_begin(struct spark_pieces *pieces, int64_t begin_ns, int64_t end_ns);

/* Adds a stretch of time; the parts outside are ignored. */
void spark_cover(struct spark_pieces *pieces, int64_t from_ns, int64_t to_ns);
struct spark spark_of(const struct spark_pieces *pieces);
