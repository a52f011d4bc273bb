#include "page/libc.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int mkostemp(char *name, int flags)
{
    (void)name, (void)flags;
    errno = EROFS;
    return -1;
}

mode_t umask(mode_t mask)
{
    return mask;
}

int fchmod(int fd, mode_t mode)
{
    (void)fd, (void)mode;
    errno = EROFS;
    return -1;
}

/* Only of the mapping of a temporary file, which cannot be made. */
int madvise(void *at, size_t size, int advice)
{
    (void)at, (void)size, (void)advice;
    errno = ENOSYS;
    return -1;
}

/* MARK: Sorting */

struct order {
    size_t size; /* of an element */
    int (*compare)(const void *, const void *, void *);
    void *context;
};

/* Merges the sorted parts [0, left) and [left, count), using `room` for a copy of the first. */
static void merge(const struct order *order, char *base, size_t left, size_t count, char *room)
{
    size_t size = order->size;
    const char *a = room, *a_end = room + left * size;
    const char *b = base + left * size, *b_end = base + count * size;
    memcpy(room, base, left * size);
    while (a < a_end) {
        bool second = b < b_end && order->compare(a, b, order->context) > 0;
        memcpy(base, second ? b : a, size);
        base += size;
        a += second ? 0 : size;
        b += second ? size : 0;
    }
}

static void sort(const struct order *order, char *base, size_t count, char *room)
{
    size_t left = count / 2;
    if (count < 2)
        return;
    sort(order, base, left, room);
    sort(order, base + left * order->size, count - left, room);
    merge(order, base, left, count, room);
}

/* A stable sort like glibc's (merge sort), so that answers are the same everywhere. */
void qsort_r(void *base, size_t count, size_t size,
             int (*compare)(const void *, const void *, void *), void *context)
{
    struct order order = {size, compare, context};
    char *room = count < 2 ? NULL : malloc(count / 2 * size);
    if (count >= 2 && !room)
        abort();
    sort(&order, base, count, room);
    free(room);
}

static int compare_plain(const void *a, const void *b, void *context)
{
    int (*const *compare)(const void *, const void *) = context;
    return (*compare)(a, b);
}

void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    qsort_r(base, count, size, compare_plain, &compare);
}
