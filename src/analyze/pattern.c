#include "analyze/pattern.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"
#include "base/utf8.h"

/* MARK: Words */

static const struct word {
    const char *word;
    enum thing thing;
    bool has_text; /* [text] may follow */
} words[] = {
    {"run", THING_RUN, false},       {"ready", THING_READY, false},
    {"block", THING_BLOCK, true},    {"syscall", THING_SYSCALL, false},
    {"create", THING_CREATE, false}, {"start", THING_START, false},
    {"stop", THING_STOP, true},      {"wake", THING_WAKE, true},
    {"end", THING_END, false},       {"creates", THING_CREATES, false},
    {"wakes", THING_WAKES, false},   {"log", THING_LOG, true},
    {"region", THING_REGION, true},  {"region-end", THING_REGION_END, true},
    {"task", THING_TASK, true},      {"task-end", THING_TASK_END, true},
    {"sample", THING_SAMPLE, false},
};

_Static_assert(sizeof words / sizeof *words == THINGS, "a word for each");

const char *thing_word(enum thing thing)
{
    return words[thing].word; /* in the order of the enum */
}

/* Returns the number of letters to insert, delete or replace; words are short. */
static size_t distance(const char *a, size_t a_size, const char *b)
{
    enum { MOST = 16 };
    size_t row[MOST + 1], b_size = strlen(b);
    if (a_size > MOST || b_size > MOST)
        return MOST;
    for (size_t i = 0; i <= b_size; i++)
        row[i] = i;
    for (size_t i = 0; i < a_size; i++) {
        size_t corner = row[0]++;
        for (size_t n = 0; n < b_size; n++) {
            size_t best = corner + ((a[i] | 0x20) != b[n]);
            best = row[n] + 1 < best ? row[n] + 1 : best;
            best = row[n + 1] + 1 < best ? row[n + 1] + 1 : best;
            corner = row[n + 1];
            row[n + 1] = best;
        }
    }
    return row[b_size];
}

/* Returns the word that this one most likely means; NULL if none is near. */
static const char *nearest(const char *word, size_t size)
{
    static const struct {
        const char *other, *meant;
    } others[] = {{"running", "run"},  {"runnable", "ready"},   {"waiting", "block"},
                  {"wait", "block"},   {"blocked", "block"},    {"sleep", "block[sleep]"},
                  {"unblock", "wake"}, {"preempt", "stop"},     {"destroy", "end"},
                  {"exit", "end"},     {"lock", "block[sync]"}, {"network", "block[network]"}};
    const char *best = NULL;
    size_t least = size > 3 ? 3 : 2;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (distance(word, size, others[i].other) == 0)
            return others[i].meant;
    for (size_t i = 0; i < THINGS; i++) {
        size_t steps = distance(word, size, words[i].word);
        if (steps < least) {
            least = steps;
            best = words[i].word;
        }
    }
    return best;
}

/* MARK: Reading */

struct parser {
    trail_pattern *pattern;
    const char *at; /* the rest of the text */
    trail_pattern_error *err;
};

/* Sets the error for [begin, end) of the text. Returns false. */
__attribute__((format(printf, 4, 5))) static bool wrong(struct parser *parser, const char *begin,
                                                        const char *end, const char *format, ...)
{
    va_list args;
    parser->err->begin = (size_t)(begin - parser->pattern->text);
    parser->err->end = (size_t)(end - parser->pattern->text);
    va_start(args, format);
    (void)vsnprintf(parser->err->message, sizeof parser->err->message, format, args);
    va_end(args);
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_blanks(struct parser *parser)
{
    while (is_blank(*parser->at))
        parser->at++;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static const char *word_end(const char *at)
{
    while (is_word(*at))
        at++;
    return at;
}

/* Returns the end of the word at `at`, for a mark below it. */
static const char *thing_end(const char *at)
{
    const char *end = word_end(at);
    if (end > at || !*at)
        return end;
    end++; /* a whole UTF-8 character */
    while (utf8_continues(*end))
        end++;
    return end;
}

/* Consumes the word if it comes next. */
static bool take(struct parser *parser, const char *word)
{
    skip_blanks(parser);
    size_t size = strlen(word);
    if ((size_t)(word_end(parser->at) - parser->at) != size || memcmp(parser->at, word, size) != 0)
        return false;
    parser->at += size;
    return true;
}

/* "10ms", "1.5s": truncated to whole nanoseconds. */
static bool read_time(struct parser *parser, int64_t *ns)
{
    skip_blanks(parser);
    const char *begin = parser->at, *digits = begin;
    while ((*digits >= '0' && *digits <= '9') || *digits == '.')
        digits++;
    const char *end = digits;
    while (is_word(*end) || (*end & 0x80)) /* a unit may begin with a micro sign */
        end++;
    if (digits == begin)
        return wrong(parser, begin, thing_end(begin), "expected a time, such as 10ms or 1.5s");
    parser->at = end;
    if (end == digits)
        return wrong(parser, begin, end, "a time needs a unit: ns, us, ms, s, m or h");
    int64_t unit = duration_unit(digits, (size_t)(end - digits)), whole = 0, part = unit, sum = 0;
    if (unit == 0)
        return wrong(parser, digits, end, "unknown unit of time; use ns, us, ms, s, m or h");
    const char *c = begin;
    for (; c < digits && *c != '.'; c++)
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, *c - '0', &whole))
            return wrong(parser, begin, end, "that is longer than any trace");
    for (c += *c == '.'; c < digits && *c != '.'; c++, part /= 10)
        sum += part / 10 * (*c - '0') + part % 10 * (*c - '0') / 10;
    if (c < digits)
        return wrong(parser, begin, end, "a time has at most one decimal point");
    if (__builtin_mul_overflow(whole, unit, &whole) || __builtin_add_overflow(whole, sum, ns))
        return wrong(parser, begin, end, "that is longer than any trace");
    return true;
}

/* MARK: Parts of a choice */

/* A function: up to a space, or quoted. */
static bool read_function(struct parser *parser, const char *word, trail_string *function)
{
    const char *begin = parser->at - strlen(word);
    skip_blanks(parser);
    bool quoted = *parser->at == '"';
    const char *at = parser->at + quoted, *end = at;
    while (*end && (quoted ? *end != '"' : !is_blank(*end)))
        end++;
    if (end == at)
        return wrong(parser, begin, parser->at,
                     "expected a function after '%s', such as main.work or main.*", word);
    if (quoted && !*end)
        return wrong(parser, parser->at, end, "missing closing \"");
    if (function->size > 0)
        return wrong(parser, begin, end, "there is one '%s' already", word);
    *function = (trail_string){at, (size_t)(end - at)};
    parser->at = end + quoted;
    return true;
}

static bool keep_text(struct parser *parser, struct pattern_choice *choice, const char *begin,
                      const char *end)
{
    trail_pattern *pattern = parser->pattern;
    while (begin < end && is_blank(*begin))
        begin++;
    while (end > begin && is_blank(end[-1]))
        end--;
    if (pattern->text_count == PATTERN_TEXTS)
        return wrong(parser, begin, end, "more than %d texts in brackets", PATTERN_TEXTS);
    pattern->texts[pattern->text_count++] = (trail_string){begin, (size_t)(end - begin)};
    choice->text_count++;
    return true;
}

/* "[chan receive|select]": brackets in it must be balanced. */
static bool read_texts(struct parser *parser, struct pattern_choice *choice)
{
    const char *open = parser->at, *begin = open + 1;
    if (!words[choice->thing].has_text)
        return wrong(parser, open, open + 1,
                     "'%s' takes no [text]; block, wake, stop, log, region and task do",
                     words[choice->thing].word);
    unsigned depth = 1;
    choice->first_text = parser->pattern->text_count;
    for (const char *at = begin;; at++) {
        if (!*at)
            return wrong(parser, open, open + 1, "missing closing ]");
        depth += *at == '[';
        depth -= *at == ']';
        if (depth > 0 && (*at != '|' || depth > 1))
            continue;
        if (!keep_text(parser, choice, begin, at))
            return false;
        begin = at + 1;
        if (depth == 0)
            break;
    }
    parser->at = begin;
    return true;
}

/* A comparison such as "> 10ms". */
static bool read_comparison(struct parser *parser, struct pattern_choice *choice)
{
    const char *begin = parser->at;
    bool less = *begin == '<', more = *begin == '>';
    parser->at++;
    bool equal = *parser->at == '=' && (less || more);
    parser->at += equal;
    const char *end = parser->at;
    if (choice->thing >= FIRST_MOMENT)
        return wrong(parser, begin, end,
                     "'%s' is a point in time and has no length; run, ready, block and syscall do",
                     words[choice->thing].word);
    int64_t ns = 0;
    if (!read_time(parser, &ns))
        return false;
    int64_t least = less ? 0 : ns + (more && !equal && ns < INT64_MAX);
    int64_t most = more ? INT64_MAX : ns - (less && !equal);
    choice->least_ns = least > choice->least_ns ? least : choice->least_ns;
    choice->most_ns = most < choice->most_ns ? most : choice->most_ns;
    if (choice->least_ns > choice->most_ns)
        return wrong(parser, begin, parser->at, "no length meets these conditions");
    return true;
}

static bool read_parts(struct parser *parser, struct pattern_choice *choice)
{
    if (*parser->at == '[' && !read_texts(parser, choice))
        return false;
    for (;;) {
        skip_blanks(parser);
        const char *begin = parser->at;
        if (take(parser, "in")) {
            if (!read_function(parser, "in", &choice->in))
                return false;
        } else if (take(parser, "by")) {
            if (choice->thing != THING_BLOCK && choice->thing != THING_WAKE)
                return wrong(parser, begin, parser->at,
                             "'by' does not apply to '%s'; it applies to block and wake",
                             words[choice->thing].word);
            if (!read_function(parser, "by", &choice->by))
                return false;
        } else if (*begin == '<' || *begin == '>' || *begin == '=') {
            if (!read_comparison(parser, choice))
                return false;
        } else {
            return true;
        }
    }
}

/* MARK: Steps */

static bool read_choice(struct parser *parser)
{
    trail_pattern *pattern = parser->pattern;
    skip_blanks(parser);
    const char *begin = parser->at, *end = word_end(begin);
    if (end == begin)
        return wrong(parser, begin, thing_end(begin),
                     "expected a state or event, such as block, run or start");
    if (pattern->choice_count == PATTERN_CHOICES)
        return wrong(parser, begin, end, "more than %d states and events", PATTERN_CHOICES);
    for (size_t i = 0; i < THINGS; i++) {
        if (strlen(words[i].word) != (size_t)(end - begin) ||
            memcmp(words[i].word, begin, (size_t)(end - begin)) != 0)
            continue;
        struct pattern_choice *choice = &pattern->choices[pattern->choice_count++];
        *choice = (struct pattern_choice){.thing = words[i].thing, .most_ns = INT64_MAX};
        pattern->things |= 1U << words[i].thing;
        parser->at = end;
        return read_parts(parser, choice);
    }
    const char *near = nearest(begin, (size_t)(end - begin));
    int size = (int)(end - begin < 60 ? end - begin : 60);
    return near ? wrong(parser, begin, end, "unknown state or event '%.*s'; did you mean '%s'?",
                        size, begin, near)
                : wrong(parser, begin, end,
                        "unknown state or event '%.*s'; 'trail find --help' lists them", size,
                        begin);
}

static bool read_within(struct parser *parser, int64_t *ns)
{
    return !take(parser, "within") || read_time(parser, ns);
}

static bool read_step(struct parser *parser)
{
    trail_pattern *pattern = parser->pattern;
    bool first = pattern->step_count == 0;
    if (pattern->step_count == PATTERN_STEPS)
        return wrong(parser, parser->at, thing_end(parser->at), "more than %d steps",
                     PATTERN_STEPS);
    struct pattern_step *step = &pattern->steps[pattern->step_count++];
    *step = (struct pattern_step){.first = pattern->choice_count, .within_ns = INT64_MAX};
    if (!first) {
        step->directly = take(parser, "directly");
        if (!read_within(parser, &step->within_ns))
            return false;
        step->directly = step->directly || take(parser, "directly");
    }
    for (;;) {
        if (!read_choice(parser))
            return false;
        step->count++;
        skip_blanks(parser);
        if (*parser->at == '|')
            parser->at++;
        else if (!take(parser, "or"))
            return true;
    }
}

static bool read_pattern(struct parser *parser)
{
    do
        if (!read_step(parser))
            return false;
    while (take(parser, "then"));
    if (!read_within(parser, &parser->pattern->within_ns))
        return false;
    skip_blanks(parser);
    const char *at = parser->at, *end = thing_end(at);
    if (!*at)
        return true;
    for (size_t i = 0; i < THINGS; i++)
        if (strlen(words[i].word) == (size_t)(end - at) &&
            memcmp(words[i].word, at, (size_t)(end - at)) == 0)
            return wrong(parser, at, end, "'then' or 'or' is missing before '%s'", words[i].word);
    return wrong(parser, at, end, "expected 'then', 'or', 'in', 'by', 'within' or a length");
}

trail_pattern *trail_pattern_parse(const char *text, trail_pattern_error *err)
{
    trail_pattern *pattern = calloc(1, sizeof *pattern);
    *err = (trail_pattern_error){0};
    if (pattern)
        pattern->text = strdup(text);
    if (!pattern || !pattern->text) {
        (void)snprintf(err->message, sizeof err->message, "no memory for the pattern");
        trail_pattern_free(pattern);
        return NULL;
    }
    pattern->within_ns = INT64_MAX;
    struct parser parser = {.pattern = pattern, .at = pattern->text, .err = err};
    if (read_pattern(&parser))
        return pattern;
    trail_pattern_free(pattern);
    return NULL;
}

void trail_pattern_free(trail_pattern *pattern)
{
    if (pattern)
        free(pattern->text);
    free(pattern);
}

/* MARK: Texts */

bool pattern_glob(trail_string glob, trail_string text)
{
    size_t g = 0, t = 0, star = SIZE_MAX, from = 0;
    while (t < text.size) {
        if (g < glob.size && glob.data[g] == '*') {
            star = g++;
            from = t;
        } else if (g < glob.size && glob.data[g] == text.data[t]) {
            g++;
            t++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (g < glob.size && glob.data[g] == '*')
        g++;
    return g == glob.size;
}

/* Short forms of Go's reasons. */
static trail_string reason_of(trail_string text)
{
    static const char *const shorts[][2] = {
        {"net", "network"}, {"chan", "chan *"}, {"cond", "sync.(*Cond).Wait"}};
    for (size_t i = 0; i < sizeof shorts / sizeof *shorts; i++)
        if (text_is(text, shorts[i][0]))
            return text_from(shorts[i][1]);
    return text;
}

bool pattern_text(const trail_pattern *pattern, const struct pattern_choice *choice,
                  trail_string text)
{
    bool reason = choice->thing == THING_BLOCK || choice->thing == THING_WAKE;
    for (unsigned i = 0; i < choice->text_count; i++) {
        trail_string glob = pattern->texts[choice->first_text + i];
        if (pattern_glob(reason ? reason_of(glob) : glob, text))
            return true;
    }
    return choice->text_count == 0;
}
