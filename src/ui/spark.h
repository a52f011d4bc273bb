/*
 * Small pictures in lines of text: a column a piece of the time, or a power of two of a length.
 */
#ifndef TRAIL_UI_SPARK_H
#define TRAIL_UI_SPARK_H

#include <trail/analyze.h>

enum { SPARK_WIDTH = 64 };

/* One column: nothing is a blank, however little there is shows, 1 and more is full. */
void spark_put(double level);

/* Time over the time: pieces of `piece_ns` of a whole of `length_ns`. */
struct spark {
    const int64_t *ns;
    size_t count;
    int64_t piece_ns, length_ns;
};

/* "|  .:#  |", at most SPARK_WIDTH columns, each by its share of `most` times the time in it. */
void spark_line(const struct spark *spark, double most);

/* Own pieces, as many as columns. */
struct spark_pieces {
    int64_t ns[SPARK_WIDTH];
    int64_t begin_ns, piece_ns, length_ns;
};

void spark_begin(struct spark_pieces *pieces, int64_t begin_ns, int64_t end_ns);

/* This much of the time counts; what is outside does not. */
void spark_cover(struct spark_pieces *pieces, int64_t from_ns, int64_t to_ns);
struct spark spark_of(const struct spark_pieces *pieces);

#endif
