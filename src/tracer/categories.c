/*
 * Categories: see categories.h. Look-ups take no lock, because signal handlers annotate. There are
 * two lists: the one in use, and the next. A change writes the next one and then makes it the one
 * in use, by the version. Words are stored with release and loaded with acquire, so a look-up that
 * sees a word of a later list also sees that the version has changed, and begins again.
 */
#include "tracer/categories.h"

#include <stdlib.h>
#include <string.h>

#define LIST_WORDS ((TRAIL_CATEGORIES_MAX + 1) / 8)

uint32_t trail_categories_ = 2; /* not the 0 of a category that was never looked up */
bool categories_listed;

/* Texts with their NUL, as atomic words. */
static uint64_t lists[2][LIST_WORDS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* MARK: The list */

/* Whether an entry, without its sign, names the category. */
static bool entry_names(const char *entry, size_t size, const char *name)
{
    bool prefix = size > 0 && entry[size - 1] == '*';
    size -= prefix;
    return strncmp(entry, name, size) == 0 && (prefix || !name[size]);
}

/* Of several entries that name it, the last one decides. */
static bool list_has(const char *list, const char *name)
{
    bool on = !*list || *list == '-';
    for (size_t size; *list; list += size + (list[size] == ',')) {
        bool off = *list == '-';
        size = strcspn(list, ",");
        if (entry_names(list + off, size - off, name))
            on = !off;
    }
    return on;
}

static uint64_t *list_of(uint32_t version)
{
    return lists[version / 2 % 2];
}

/* The lock is held. */
static void store_list(const uint64_t *words)
{
    uint32_t next = trail_categories_ + 2;
    for (size_t i = 0; i < LIST_WORDS; i++) {
        __atomic_store_n(&list_of(next)[i], words[i], __ATOMIC_RELEASE);
        tracer_pause(PAUSE_STORES);
    }
    __atomic_store_n(&trail_categories_, next, __ATOMIC_RELEASE);
    __atomic_store_n(&categories_listed, words[0] != 0, __ATOMIC_RELAXED);
}

/* Copies the list in use to `copy`, and returns its version. */
static uint32_t load_list(uint64_t *copy)
{
    uint32_t version, after = __atomic_load_n(&trail_categories_, __ATOMIC_ACQUIRE);
    do {
        version = after;
        for (size_t i = 0; i < LIST_WORDS; i++) {
            copy[i] = __atomic_load_n(&list_of(version)[i], __ATOMIC_ACQUIRE);
            tracer_pause(PAUSE_COPIES);
        }
        after = __atomic_load_n(&trail_categories_, __ATOMIC_ACQUIRE);
    } while (after != version);
    return version;
}

bool trail_categories_set(const char *list, trail_error *err)
{
    uint64_t words[LIST_WORDS] = {0};
    size_t size = list ? strnlen(list, TRAIL_CATEGORIES_MAX + 1) : 0;
    if (size > TRAIL_CATEGORIES_MAX)
        return record_fail(err, TRAIL_USAGE, "the list of categories has more than %d bytes",
                           TRAIL_CATEGORIES_MAX);
    if (size)
        memcpy(words, list, size);
    pthread_mutex_lock(&lock);
    store_list(words);
    pthread_mutex_unlock(&lock);
    return true;
}

/* Another thread of the parent may hold it. */
static void after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

/* A list in the environment that is too long is ignored. */
__attribute__((constructor)) static void begin(void)
{
    const char *list = secure_getenv("TRAIL_CATEGORIES");
    pthread_atfork(NULL, NULL, after_fork);
    if (list)
        (void)trail_categories_set(list, NULL);
}

/* MARK: Look-up */

/* Returns the version of the list and, in its lowest bit, whether `name` is on. */
static uint32_t look_up(const char *name)
{
    uint64_t list[LIST_WORDS];
    uint32_t version = load_list(list);
    return version | list_has((const char *)list, name ? name : "");
}

bool categories_have(const char *name)
{
    return look_up(name) & 1;
}

bool trail_category_look_up_(trail_category *category)
{
    uint32_t seen = look_up(category->name);
    __atomic_store_n(&category->seen_, seen, __ATOMIC_RELAXED);
    return seen & 1;
}
