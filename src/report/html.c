#include "report/html.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/plain.h"
#include "base/show.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/whole.h"

/* MARK: Text */

static void put_markup(struct out *out, const char *text, size_t size)
{
    static const char *const entities[UINT8_MAX + 1] = {
        ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;", ['\''] = "&#39;"};
    for (size_t i = 0; i < size; i++) {
        const char *entity = entities[(uint8_t)text[i]];
        if (entity)
            out_str(out, entity);
        else
            out_char(out, text[i]);
    }
}

/* Whether the character is drawn as a picture, alone or as part of a sequence. */
static bool is_picture(const uint8_t *at, const uint8_t *end)
{
    uint32_t rune = 0;
    return at < end && utf8_decode(at, end, &rune) > 0 && rune_is_print(rune) &&
           ((rune >= 0x2600 && rune < 0x2800) || (rune >= 0x1f300 && rune < 0x1fb00));
}

/* A joiner within a picture; escaping it would break the picture apart. */
static bool is_joiner(const uint8_t *at, const uint8_t *end, bool after_picture)
{
    static const uint8_t joiner[] = {0xe2, 0x80, 0x8d}; /* U+200D */
    return after_picture && (size_t)(end - at) > sizeof joiner &&
           memcmp(at, joiner, sizeof joiner) == 0 && is_picture(at + sizeof joiner, end);
}

void html_text(struct out *out, trail_string text)
{
    const uint8_t *begin = (const uint8_t *)text.data, *at = begin, *end = begin + text.size;
    bool after_picture = false;
    while (at < end && at - begin < HTML_TEXT_MOST) {
        char shown[PLAIN_MOST] = "";
        unsigned size = 3;
        bool picture = is_picture(at, end);
        if (is_joiner(at, end, after_picture)) {
            out_bytes(out, at, size);
            at += size;
        } else {
            at += plain_step(at, end, shown, &size);
            put_markup(out, shown, size);
        }
        /* U+FE0F after a picture is part of it. */
        after_picture =
            picture || (after_picture && size == 3 && memcmp(shown, "\xef\xb8\x8f", 3) == 0);
    }
    if (at < end)
        out_str(out, "&#8230;");
}

void html_drawn_begin(struct out *out)
{
    out_str(out, "<foreignObject width=\"100%\" height=\"100%\"><div><span>");
}

void html_drawn_end(struct out *out)
{
    out_str(out, "</span></div></foreignObject>");
}

/* In pieces, because html_text truncates. */
static void put_whole(struct out *out, trail_string text)
{
    while (text.size > 0) {
        trail_string piece = utf8_first(text, HTML_TEXT_MOST);
        html_text(out, piece);
        text.data += piece.size;
        text.size -= piece.size;
    }
}

void html_name(struct out *out, trail_string name)
{
    if (name.size <= HTML_NAME_MOST) {
        out_str(out, "<bdi class=\"name\">");
        html_text(out, name);
    } else {
        out_str(out, "<bdi class=\"name\" title=\"");
        put_whole(out, utf8_first(name, HTML_TIP_MOST));
        out_str(out, "\">");
        html_text(out, utf8_first(name, HTML_NAME_MOST / 2));
        out_str(out, "&#8230;");
        html_text(out, utf8_last(name, HTML_NAME_MOST / 2));
    }
    out_str(out, "</bdi>");
}

/* The end of a name, in bytes, that stays where the rest is shortened. */
enum { LANE_NAME_END = 12 };

void html_lane_name(struct out *out, trail_string name)
{
    trail_string end = utf8_last(name, LANE_NAME_END);
    size_t rest = name.size - end.size;
    out_str(out, "<bdi class=\"cut\" title=\"");
    put_whole(out, utf8_first(name, HTML_TIP_MOST));
    out_str(out, "\"><span>");
    html_text(out, utf8_first(name, rest < HTML_NAME_MOST / 2 ? rest : HTML_NAME_MOST / 2));
    out_str(out, "</span><span>");
    html_text(out, end);
    out_str(out, "</span></bdi>");
}

void html_word(struct out *out, const char *text)
{
    html_text(out, text_from(text));
}

/* Whether a text begins with the unit of a figure. */
static bool is_unit(trail_string text)
{
    static const char *const units[] = {"%", "ns", "ms", "s", "KiB", "MiB", "GiB"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        trail_string rest = text;
        if (text_take(&rest, units[i]) && (rest.size == 0 || !isalpha((unsigned char)*rest.data)))
            return true;
    }
    return false;
}

/* A line never ends between a number and its unit. */
static void put_unbroken(struct out *out, trail_string text)
{
    size_t from = 0;
    for (size_t i = 1; i + 1 < text.size; i++) {
        if (text.data[i] != ' ' || !isdigit((unsigned char)text.data[i - 1]) ||
            !is_unit((trail_string){text.data + i + 1, text.size - i - 1}))
            continue;
        put_whole(out, (trail_string){text.data + from, i - from});
        out_str(out, "&nbsp;");
        from = i + 1;
    }
    put_whole(out, (trail_string){text.data + from, text.size - from});
}

void html_figures(struct out *out, const char *text)
{
    const char *us;
    for (; *(us = duration_us_in(text)); text = us + 2) {
        bool is_apart = us > text && us[-1] == ' ';
        put_unbroken(out, (trail_string){text, (size_t)(us - text) - is_apart});
        out_str(out, is_apart ? "&nbsp;" MICRO_SIGN "s" : MICRO_SIGN "s");
    }
    put_unbroken(out, text_from(text));
}

/* MARK: Numbers */

void html_number(struct out *out, uint64_t value)
{
    char text[SHOW_SIZE];
    out_str(out, show_thousands(text, value));
}

void html_duration(struct out *out, int64_t ns)
{
    char text[DURATION_SIZE];
    html_figures(out, ns == 0 ? "-" : duration_text(text, ns, DURATION_WORDS));
}

void html_share(struct out *out, double share)
{
    char text[SHOW_SIZE];
    out_str(out, show_percent(text, share * 100));
}

void html_coordinate(struct out *out, double value)
{
    char text[40];
    /* No drawing is this large; NaN is drawn at the edge. */
    value = value > -1e9 ? value < 1e9 ? value : 1e9 : value < 0 ? -1e9 : 0;
    int size = snprintf(text, sizeof text, "%.3f", value);
    while (size > 1 && text[size - 1] == '0')
        size--;
    if (size > 1 && text[size - 1] == '.')
        size--;
    out_bytes(out, text, (size_t)size);
}

/* MARK: Tables */

void html_table_begin(struct html_table *table, struct out *out, const char *caption,
                      const char *titles)
{
    *table = (struct html_table){.out = out};
    out_str(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    html_word(out, caption);
    out_str(out, "\"><table><caption>");
    html_word(out, caption);
    out_str(out, "</caption><thead><tr>");
    while (*titles && *titles != '|' && table->columns < HTML_COLUMNS) {
        size_t size = strcspn(titles, "<>");
        bool right = titles[size] == '>';
        out_str(out, right ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
        for (size_t i = 0; i < size; i++)
            out_char(out, titles[i] == '_' ? ' ' : titles[i]);
        out_str(out, "</th>");
        table->right[table->columns++] = right;
        titles += size + (titles[size] != '\0');
        titles += strspn(titles, " ");
    }
    if (*titles == '|') {
        out_str(out, "<td class=\"bars\"></td>");
        table->columns++;
    }
    out_str(out, "</tr></thead><tbody>\n");
}

void html_table_end(struct html_table *table)
{
    out_str(table->out, "</tbody></table></div>\n");
}

static bool is_first(const struct html_table *table)
{
    return table->at == 0;
}

static void cell_begin(struct html_table *table)
{
    if (is_first(table))
        out_str(table->out, "<tr>");
    out_str(table->out, is_first(table) ? "<th scope=\"row\"" : "<td");
    if (table->right[table->at])
        out_str(table->out, " class=\"n\"");
}

static void cell_end(struct html_table *table)
{
    out_str(table->out, is_first(table) ? "</th>" : "</td>");
    if (++table->at < table->columns)
        return;
    out_str(table->out, "</tr>\n");
    table->at = 0;
}

static void cell_value(struct html_table *table, int64_t value)
{
    cell_begin(table);
    out_str(table->out, " data-v=\"");
    out_i64(table->out, value);
    out_str(table->out, "\">");
}

void html_cell_text(struct html_table *table, trail_string text)
{
    cell_begin(table);
    out_char(table->out, '>');
    html_name(table->out, text);
    cell_end(table);
}

void html_cell_word(struct html_table *table, const char *text)
{
    html_cell_text(table, text_from(text));
}

void html_cell_hint(struct html_table *table, const char *text, const char *hint)
{
    cell_begin(table);
    out_str(table->out, " class=\"hint\" title=\"");
    html_word(table->out, hint);
    out_str(table->out, "\">");
    html_figures(table->out, text);
    cell_end(table);
}

void html_cell_number(struct html_table *table, uint64_t value)
{
    cell_value(table, value > INT64_MAX ? INT64_MAX : (int64_t)value);
    html_number(table->out, value);
    cell_end(table);
}

void html_cell_id(struct html_table *table, int64_t id)
{
    cell_value(table, id);
    out_i64(table->out, id);
    cell_end(table);
}

void html_cell_duration(struct html_table *table, int64_t ns)
{
    cell_value(table, ns);
    html_duration(table->out, ns);
    cell_end(table);
}

void html_cell_share(struct html_table *table, double share)
{
    cell_value(table, whole_of(share * 1e9));
    html_share(table->out, share);
    cell_end(table);
}

/* No exact value: the cell of the share before it has it. */
void html_cell_bar(struct html_table *table, const char *drawn_as, double share)
{
    cell_begin(table);
    out_format(table->out,
               "><svg class=\"share\" aria-hidden=\"true\"><rect class=\"%s\" height=\"100%%\" "
               "width=\"",
               drawn_as);
    html_coordinate(table->out, 100 * (share < 0 ? 0 : share > 1 ? 1 : share));
    out_str(table->out, "%\"/></svg>");
    cell_end(table);
}
