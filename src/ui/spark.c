/* Small pictures of values over time, made of characters. */
#include "ui/spark.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/whole.h"
#include "ui/show.h"

void spark_put(double level)
{
    double eighths = level * 8;
    int step = eighths > 0 ? (int)whole_within(eighths + 0.5, 1, 8) : 0;
    if (step > 0 && show_is_utf8())
        printf("\xe2\x96%c", 0x80 + step);
    else
        putchar(" .:-=+*#@"[step]);
}

void spark_line(const struct spark *spark, double most)
{
    size_t width = spark->count < SPARK_WIDTH ? spark->count : SPARK_WIDTH;
    putchar('|');
    for (size_t i = 0; i < width; i++) {
        size_t from = i * spark->count / width, to = (i + 1) * spark->count / width;
        double sum = 0, time = 0;
        for (size_t n = from; n < to; n++) {
            double piece = (double)spark->piece_ns;
            double rest = (double)spark->length_ns - (double)n * piece;
            sum += spark->ns ? (double)spark->ns[n] : 0;
            time += rest < piece ? rest : piece;
        }
        spark_put(time > 0 && most > 0 ? sum / time / most : 0);
    }
    putchar('|');
}

void spark_begin(struct spark_pieces *pieces, int64_t begin_ns, int64_t end_ns)
{
    int64_t length;
    if (end_ns < begin_ns || __builtin_sub_overflow(end_ns, begin_ns, &length))
        length = 0;
    *pieces = (struct spark_pieces){.begin_ns = begin_ns, .length_ns = length};
    pieces->piece_ns = length / SPARK_WIDTH + (length % SPARK_WIDTH != 0);
}

void spark_cover(struct spark_pieces *pieces, int64_t from_ns, int64_t to_ns)
{
    int64_t end_ns = pieces->begin_ns + pieces->length_ns;
    from_ns = from_ns > pieces->begin_ns ? from_ns : pieces->begin_ns;
    to_ns = to_ns < end_ns ? to_ns : end_ns;
    if (from_ns >= to_ns)
        return;
    int64_t from = from_ns - pieces->begin_ns, to = to_ns - pieces->begin_ns;
    while (from < to) {
        int64_t piece = from / pieces->piece_ns;
        int64_t left = pieces->piece_ns - from % pieces->piece_ns;
        left = left < to - from ? left : to - from;
        pieces->ns[piece] += left;
        from += left;
    }
}

struct spark spark_of(const struct spark_pieces *pieces)
{
    int64_t each = pieces->piece_ns > 0 ? pieces->piece_ns : 1;
    return (struct spark){
        .ns = pieces->ns,
        .count = (size_t)(pieces->length_ns / each + (pieces->length_ns % each != 0)),
        .piece_ns = each,
        .length_ns = pieces->length_ns,
    };
}
