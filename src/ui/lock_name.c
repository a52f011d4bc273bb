/* Names of locks, within a trace and between traces. */
#include "ui/lock_name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/goroutine_filter.h"

enum { KIND_MOST = 100, NAME_MOST = 300, FUNCTION_MOST = 130, PLACE_SIZE = 400 };

static int at_most(size_t size, int most)
{
    return size < (size_t)most ? (int)size : most;
}

const char *lock_name(const struct analysis *analysis, const trail_lock *lock, char *buf)
{
    char place[PLACE_SIZE];
    trail_string kind = analysis_text(analysis, lock->kind);
    trail_string name = trail_analysis_text(analysis->answers, lock->name);
    int size = at_most(kind.size, KIND_MOST);
    if (name.size > 0)
        (void)snprintf(buf, LOCK_NAME_SIZE, "%.*s %.*s", size, kind.data,
                       at_most(name.size, NAME_MOST), name.data);
    else if (lock->waited)
        (void)snprintf(buf, LOCK_NAME_SIZE, "%.*s in %s", size, kind.data,
                       place_text(analysis, lock->waited, place, sizeof place));
    else
        (void)snprintf(buf, LOCK_NAME_SIZE, "%.*s", size, kind.data);
    return plain_inside(buf, LOCK_NAME_SIZE);
}

/* MARK: Different names */

/* What distinguishes locks of the same name, in this order; the last always does. */
enum difference { WAITED_AT, WOKEN_BY, WOKEN_AT, NUMBERED, DIFFERENCES };

struct titled {
    const trail_lock *lock;
    char **title;
};

static int by_title(const void *a, const void *b)
{
    const struct titled *x = a, *y = b;
    return strcmp(*x->title, *y->title) ?: (x->title > y->title) - (x->title < y->title);
}

static trail_stack stack_of(const trail_lock *lock, enum difference difference)
{
    return difference == WAITED_AT ? lock->waited : lock->woken;
}

/* Adds to `text` what distinguishes alike[at] from the others. */
static void add_difference(const struct analysis *analysis, const struct titled *alike,
                           size_t count, size_t at, enum difference difference, char *text)
{
    char place[PLACE_SIZE];
    size_t used = strlen(text), left = LOCK_NAME_SIZE - used;
    const trail_lock *lock = alike[at].lock;
    if (difference == NUMBERED) {
        (void)snprintf(text + used, left, " (%zu)", at + 1);
        return;
    }
    trail_stack own = stack_of(lock, difference);
    for (size_t i = 0; i < count; i++) {
        trail_stack other = stack_of(alike[i].lock, difference);
        if (other == own)
            continue;
        if (difference != WOKEN_BY)
            place_add_difference(analysis, own, other, text, LOCK_NAME_SIZE);
        else
            (void)snprintf(text + used, left, ", woken by %s",
                           own ? place_text(analysis, own, place, sizeof place)
                               : "nothing in the trace");
        return;
    }
}

/* Returns false if out of memory. */
static bool distinguish(const struct analysis *analysis, const struct titled *alike, size_t count,
                        enum difference difference)
{
    char text[LOCK_NAME_SIZE];
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(text, sizeof text, "%s", *alike[i].title);
        add_difference(analysis, alike, count, i, difference, text);
        char *longer = strdup(text);
        if (!longer)
            return false;
        free(*alike[i].title);
        *alike[i].title = longer;
    }
    return true;
}

/* Distinguishes those that have the same title. Returns false if out of memory. */
static bool distinguish_all(const struct analysis *analysis, struct titled *all, size_t count,
                            enum difference difference)
{
    qsort(all, count, sizeof *all, by_title);
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && strcmp(*all[begin].title, *all[end].title) == 0;)
            end++;
        if (end - begin > 1 && !distinguish(analysis, all + begin, end - begin, difference))
            return false;
    }
    return true;
}

/* Returns false if out of memory. */
static bool write_titles(const struct analysis *analysis, struct titled *all, size_t count)
{
    char text[LOCK_NAME_SIZE];
    for (size_t i = 0; i < count; i++) {
        *all[i].title = strdup(lock_name(analysis, all[i].lock, text));
        if (!*all[i].title)
            return false;
    }
    for (enum difference i = WAITED_AT; i < DIFFERENCES; i++)
        if (!distinguish_all(analysis, all, count, i))
            return false;
    return true;
}

char **lock_titles(const struct analysis *analysis)
{
    const trail_lock *const *locks;
    size_t count = trail_analysis_locks(analysis->answers, &locks);
    char **titles = calloc(count + 1, sizeof *titles);
    struct titled *all = calloc(count + 1, sizeof *all);
    bool good = titles && all;
    for (size_t i = 0; good && i < count; i++)
        all[i] = (struct titled){locks[i], &titles[i]};
    good = good && write_titles(analysis, all, count);
    free(all);
    if (good)
        return titles;
    lock_titles_free(titles);
    return NULL;
}

void lock_titles_free(char **titles)
{
    for (size_t i = 0; titles && titles[i]; i++)
        free(titles[i]);
    free(titles);
}

/* MARK: What two traces agree on */

/* Whether the text up to `size` is exactly an address. */
static bool is_address(const char *text, size_t size)
{
    if (size < 3 || memcmp(text, "0x", 2) != 0)
        return false;
    for (size_t i = 2; i < size; i++)
        if (!isxdigit((unsigned char)text[i]))
            return false;
    return true;
}

/* "f x.c:12": returns the length without the line. */
static size_t without_line(const char *text, size_t size)
{
    size_t end = size;
    while (end > 0 && isdigit((unsigned char)text[end - 1]))
        end--;
    return end > 0 && end < size && text[end - 1] == ':' ? end - 1 : size;
}

/* Returns the length of "stats_mu of server (4711)" without the process. */
static size_t without_process(const char *text, size_t size)
{
    static const char of[] = " of ";
    size_t end = size > 0 && text[size - 1] == ')' ? size - 1 : 0;
    while (end > 0 && isdigit((unsigned char)text[end - 1]))
        end--;
    const char *at = end > 0 && text[end - 1] == '(' ? memmem(text, end, of, sizeof of - 1) : NULL;
    return at ? (size_t)(at - text) : size;
}

/*
 * A symbol identifies a lock; an address does not, but the place where the lock was first seen
 * does. It comes after either: "0x7f10 (first seen locked in f x.c:12)".
 */
static void identify_named(trail_string kind, trail_string name, char *buf)
{
    static const char seen[] = " (first seen locked in ";
    const char *place = memmem(name.data, name.size, seen, sizeof seen - 1);
    size_t own = without_process(name.data, place ? (size_t)(place - name.data) : name.size);
    int size = at_most(kind.size, KIND_MOST);
    if (!is_address(name.data, own)) {
        (void)snprintf(buf, LOCK_NAME_SIZE, "%.*s %.*s", size, kind.data, at_most(own, NAME_MOST),
                       name.data);
        return;
    }
    if (!place) {
        (void)snprintf(buf, LOCK_NAME_SIZE, "%.*s without a name", size, kind.data);
        return;
    }
    place += 2; /* the text in parentheses */
    size_t left = (size_t)(name.data + name.size - place);
    left -= left > 0 && place[left - 1] == ')';
    (void)snprintf(buf, LOCK_NAME_SIZE, "%.*s %.*s", size, kind.data,
                   at_most(without_line(place, left), NAME_MOST), place);
}

/* Returns "main.work < main.main": like place_text, without files and lines. */
static const char *functions_of(const struct analysis *analysis, trail_stack stack, char *buf,
                                size_t size)
{
    const trail_place *places;
    size_t count = trail_analysis_stack(analysis->answers, stack, &places);
    if (count == 0) {
        (void)snprintf(buf, size, "(no stack)");
        return buf;
    }
    size_t own = trail_analysis_stack_own(analysis->answers, stack);
    trail_string function = analysis_text(analysis, places[own].function), caller = {"", 0};
    size_t by = place_caller(analysis, stack);
    if (by < count)
        caller = analysis_text(analysis, places[by].function);
    (void)snprintf(buf, size, "%.*s%s%.*s", at_most(function.size, FUNCTION_MOST), function.data,
                   caller.size ? " < " : "", at_most(caller.size, FUNCTION_MOST), caller.data);
    return buf;
}

static void identify_places(const struct analysis *analysis, const trail_lock *lock,
                            trail_string kind, char *buf)
{
    char waited[PLACE_SIZE / 2 + 80], woken[PLACE_SIZE / 2 + 80] = "nothing in the trace";
    if (lock->woken)
        functions_of(analysis, lock->woken, woken, sizeof woken);
    /* A mutex is the same whichever function releases it. */
    (void)snprintf(buf, LOCK_NAME_SIZE, "%.*s in %s%s%s", at_most(kind.size, KIND_MOST), kind.data,
                   functions_of(analysis, lock->waited, waited, sizeof waited),
                   lock->can_be_held ? "" : ", woken by ", lock->can_be_held ? "" : woken);
}

const char *lock_identity(const struct analysis *analysis, const trail_lock *lock, char *buf)
{
    trail_string kind = analysis_text(analysis, lock->kind);
    trail_string name = trail_analysis_text(analysis->answers, lock->name);
    if (name.size > 0)
        identify_named(kind, name, buf);
    else if (lock->waited || lock->woken)
        identify_places(analysis, lock, kind, buf);
    else
        (void)snprintf(buf, LOCK_NAME_SIZE, "%.*s", at_most(kind.size, KIND_MOST), kind.data);
    return plain_inside(buf, LOCK_NAME_SIZE);
}
