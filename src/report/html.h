/*
 * HTML: text with any bytes, escaped, and tables that a script can sort.
 *
 *     struct html_table table;
 *     html_table_begin(&table, out, "Locks", "lock< waits> total>");
 *     html_cell_text(&table, name); html_cell_number(&table, 3); html_cell_duration(&table, ns);
 *     html_table_end(&table);
 */
#pragma once

#include <trail/read.h>

#include "base/out.h"

/* Longer texts are truncated; longer names lose their middle, and the tip has up to HTML_TIP_MOST
 * of them. All in bytes. */
enum { HTML_TEXT_MOST = 400, HTML_NAME_MOST = 80, HTML_TIP_MOST = 4096 };

/*
 * Writes text as the content of an element or of a quoted attribute, in the form of base/plain.h:
 * invalid UTF-8, control characters and bidirectional controls are escaped.
 */
void html_text(struct out *out, trail_string text);
void html_word(struct out *out, const char *text);

/* Writes a name of the trace as an element of its own, so that its direction does not affect the
 * text around it. */
void html_name(struct out *out, trail_string name);

/* Writes a name for a column of lanes: there it is shortened in the middle, since names differ at
 * their ends. */
void html_lane_name(struct out *out, trail_string name);

/* Like html_text, for text of any length with durations: microseconds get their sign, and a
 * number stays on one line with its unit. */
void html_figures(struct out *out, const char *text);

/* "12,345"; "1.23 ms", "-" for 0; "12.3 %" of 0.123. */
void html_number(struct out *out, uint64_t value);
void html_duration(struct out *out, int64_t ns);
void html_share(struct out *out, double share);

/* Writes a number for an attribute of a drawing, as short as possible. */
void html_coordinate(struct out *out, double value);

/* Around a text in a drawing, as wide as the <svg> that it is in: shortened to its room. */
void html_drawn_begin(struct out *out);
void html_drawn_end(struct out *out);

enum { HTML_COLUMNS = 16 };

struct html_table {
    struct out *out;
    bool right[HTML_COLUMNS];
    int columns, at;
};

/*
 * Titles are separated by spaces, each ending with < (text) or > (number); _ is a space. A last
 * title | is a column of bars, which takes the remaining width.
 */
void html_table_begin(struct html_table *table, struct out *out, const char *caption,
                      const char *titles);
void html_table_end(struct html_table *table);

/*
 * Adds the next cell, row by row; the first of a row is its header. Numbers keep their exact value.
 */
void html_cell_text(struct html_table *table, trail_string text);
void html_cell_word(struct html_table *table, const char *text);
void html_cell_hint(struct html_table *table, const char *text,
                    const char *hint); /* figures; shown on hover */
void html_cell_number(struct html_table *table, uint64_t value);
void html_cell_id(struct html_table *table, int64_t id);
void html_cell_duration(struct html_table *table, int64_t ns);
void html_cell_share(struct html_table *table, double share);
void html_cell_bar(struct html_table *table, const char *drawn_as, double share);
