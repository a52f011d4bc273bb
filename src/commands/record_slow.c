/* The conditions of --snapshot-if, and messages about snapshots: see record_slow.h. */
#include "commands/record_slow.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collect/states.h"
#include "ui/follow_up.h"
#include "ui/values.h"
#include "wire/waits.h"

/* MARK: Messages */

enum { MORE_SIZE = 600 };

/* Prints the message, then the text with a caret below the error. */
static int wrong(const struct command *command, const char *text, size_t at, const char *what)
{
    print_message("%s: --snapshot-if: %s", command->name, what);
    print_marked_text("    ", text, at, 1);
    return usage_hint(command);
}

/* MARK: Kinds of waits */

static const struct wire_wait_kind *kind_of(unsigned wait)
{
    return &wire_wait_kinds[wire_log_kinds[wait]];
}

/* Kinds after this one do not occur in records. */
#define LAST_WAIT SHM_KERNEL

/* Returns the waits of the kind with that name; 0: there is no such kind. */
static uint64_t waits_named(const char *word)
{
    uint64_t waits = 0;
    for (unsigned i = SHM_NO_WAIT + 1; i <= LAST_WAIT; i++)
        waits |= (uint64_t)(strcmp(kind_of(i)->word, word) == 0) << i;
    return waits;
}

static uint64_t waits_for_locks(void)
{
    uint64_t waits = 0;
    for (unsigned i = SHM_NO_WAIT + 1; i <= LAST_WAIT; i++) {
        unsigned traits = kind_of(i)->traits & (WIRE_WAIT_HELD | WIRE_WAIT_IDLE);
        waits |= (uint64_t)(traits == WIRE_WAIT_HELD) << i;
    }
    return waits;
}

/* Waits that may last as long as the program: for work, for children, for a time, or in an unknown
 * call. */
static uint64_t waits_without_idle(void)
{
    uint64_t waits = 0;
    for (unsigned i = SHM_NO_WAIT + 1; i <= LAST_WAIT; i++)
        waits |= (uint64_t) !(kind_of(i)->traits & WIRE_WAIT_IDLE) << i;
    return waits & ~(UINT64_C(1) << SHM_JOIN | UINT64_C(1) << SHM_CHILD | UINT64_C(1) << SHM_SLEEP |
                     UINT64_C(1) << SHM_KERNEL);
}

/* Writes "no kind of wait 'mutx'; did you mean 'mutex'? There are mutex, rwlock, ...". */
static void explain_kinds(const char *word, char text[MORE_SIZE])
{
    const char *words[SHM_WAITS + 1] = {NULL};
    size_t count = 0, size;
    for (unsigned i = SHM_NO_WAIT + 1; i <= LAST_WAIT; i++) {
        if (count == 0 || strcmp(words[count - 1], kind_of(i)->word) != 0)
            words[count++] = kind_of(i)->word;
    }
    const char *nearest = nearest_word(word, words);
    size = (size_t)snprintf(text, MORE_SIZE, "no kind of wait '%.100s'; %s%s%sthere are", word,
                            nearest ? "did you mean '" : "", nearest ? nearest : "",
                            nearest ? "'? " : "");
    for (size_t i = 0; i < count && size < MORE_SIZE; i++)
        size += (size_t)snprintf(text + size, MORE_SIZE - size, "%s %s", i ? "," : "", words[i]);
}

/* MARK: Parsing */

static const struct subject {
    const char *word;
    enum slow_what what;
    bool takes_name;
    uint64_t (*waits)(void); /* of any kind; NULL: not a wait */
} subjects[] = {
    {"task", SLOW_TASK, true, NULL},
    {"region", SLOW_REGION, true, NULL},
    {"wait", SLOW_WAIT, true, waits_without_idle},
    {"lock", SLOW_WAIT, false, waits_for_locks},
    {0},
};

static const struct subject *find_subject(const char *text, size_t length)
{
    const struct subject *subject = subjects;
    while (subject->word &&
           (strlen(subject->word) != length || strncmp(subject->word, text, length) != 0))
        subject++;
    return subject->word ? subject : NULL;
}

/* Parses ":NAME" at *at, if it is there. */
static int parse_subject_name(struct slow_limit *limit, const struct subject *subject,
                              const struct command *command, const char *text, size_t *at)
{
    char more[MORE_SIZE], *name = NULL;
    size_t begin = *at + 1;
    if (text[*at] != ':')
        return EXIT_GOOD;
    if (!subject->takes_name)
        return wrong(command, text, *at, "lock has no kinds; use 'wait:mutex > 50ms' for one");
    *at = parse_name(text, begin, ">", &name);
    limit->name = name;
    if (*at == 0)
        return wrong(command, text, begin, "the closing quote of the name is missing");
    if (!*name)
        return wrong(command, text, begin, "a name is missing after ':'");
    if (!subject->waits)
        return EXIT_GOOD;
    limit->waits = waits_named(name);
    if (limit->waits)
        return EXIT_GOOD;
    explain_kinds(name, more);
    return wrong(command, text, begin, more);
}

static int parse_limit(struct slow_limit *limit, const struct command *command, const char *text,
                       size_t at)
{
    char value[32];
    size_t length;
    if (text[at] != '>')
        return wrong(command, text, at, "'>' is missing: 'task:request > 200ms'");
    at = skip_space(text, at + 1);
    length = strcspn(text + at, " \t\n");
    if (length >= sizeof value || text[skip_space(text, at + length)])
        return wrong(command, text, at, "expected a time such as 200ms");
    memcpy(value, text + at, length);
    value[length] = '\0';
    if (!parse_time(value, &limit->ns) || limit->ns <= 0)
        return wrong(command, text, at, "expected a time such as 200ms");
    return EXIT_GOOD;
}

static int parse(struct slow_limit *limit, const struct command *command, const char *text)
{
    size_t begin = skip_space(text, 0), end = begin + strcspn(text + begin, " \t\n:<=>\"");
    const struct subject *subject = find_subject(text + begin, end - begin);
    int code;
    *limit = (struct slow_limit){0};
    if (!subject)
        return wrong(command, text, begin,
                     "a condition is for task, task:NAME, region, region:NAME, wait, wait:KIND "
                     "or lock: 'task:request > 200ms'");
    limit->what = subject->what;
    limit->waits = subject->waits ? subject->waits() : 0;
    code = parse_subject_name(limit, subject, command, text, &end);
    return code == EXIT_GOOD ? parse_limit(limit, command, text, skip_space(text, end)) : code;
}

int record_slow_add(const struct command *command, void *slow, const char *text)
{
    struct record_slow *s = slow;
    struct slow_limit *limits = reallocarray(s->limits, s->count + 1, sizeof *limits);
    const char **texts = reallocarray(s->texts, s->count + 1, sizeof *texts);
    if (limits)
        s->limits = limits;
    if (texts)
        s->texts = texts;
    if (!limits || !texts)
        return usage_error(command, "no memory");
    s->texts[s->count] = text;
    return parse(&s->limits[s->count++], command, text);
}

void record_slow_free(struct record_slow *slow)
{
    for (size_t i = 0; i < slow->count; i++)
        free((char *)slow->limits[i].name);
    free(slow->limits);
    free(slow->texts);
}

/* MARK: What can be met */

static bool is_recorded(const struct slow_limit *limit, uint32_t groups)
{
    for (unsigned i = SHM_NO_WAIT + 1; i <= LAST_WAIT; i++) {
        if (limit->waits >> i & 1 && wait_kinds[i].group & groups)
            return true;
    }
    return limit->what != SLOW_WAIT;
}

/* How much longer a snapshot lasts than the longest event in progress that caused it. */
#define MARGIN_NS 1000000000

int record_slow_check(const struct record_slow *slow, const struct command *command,
                      const struct recorder_options *options)
{
    for (size_t i = 0; i < slow->count; i++) {
        int64_t needed_ns;
        if (options->process && slow->limits[i].what != SLOW_WAIT)
            return usage_error(command,
                               "--snapshot-if='%s': only a program started by trail record reports "
                               "its tasks and regions: not with --pid",
                               slow->texts[i]);
        if (!is_recorded(&slow->limits[i], options->groups))
            return usage_error(command, "--snapshot-if='%s': --only leaves these waits out",
                               slow->texts[i]);
        if (__builtin_mul_overflow(slow->limits[i].ns, SLOW_OPEN, &needed_ns) ||
            __builtin_add_overflow(needed_ns, MARGIN_NS, &needed_ns) ||
            needed_ns > options->limits.flight_ns)
            return usage_error(command,
                               "--snapshot-if='%s': --flight is too short to contain such a "
                               "slow event: at least --flight=%" PRId64 "s",
                               slow->texts[i], (needed_ns + 999999999) / 1000000000);
    }
    return EXIT_GOOD;
}

/* MARK: Snapshots */

void record_slow_print(const struct slow_event *event, const char *path)
{
    char line[SLOW_LINE], file[FOLLOW_UP_SIZE];
    slow_line(event, line);
    if (path)
        print_message("snapshot %s: %s; see: trail summary %s", path, line, shell_file(path, file));
    else
        print_message("no snapshot: %s; --snapshot-max leaves no room for one", line);
}

void record_slow_print_left_out(const struct recorder *recorder)
{
    const struct slow_snapshots *slow = &recorder->slow;
    if (slow->too_soon)
        print_message("%" PRIu64
                      " more %s slow, too soon after another for a snapshot (--snapshot-every)",
                      slow->too_soon, slow->too_soon == 1 ? "was" : "were");
    if (slow->too_large)
        print_message("%" PRIu64 " snapshot%s not written: --snapshot-max left no room",
                      slow->too_large, slow->too_large == 1 ? " was" : "s were");
}
