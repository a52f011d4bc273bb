/* Finds the class of a wait in wait_classes.def. */
#include "words/wait_classes.h"

#include <stddef.h>

#include "base/text.h"

static const struct row {
    const char *word;
    enum wait_class class;
} rows[] = {
#define WAIT_CLASS(class, word) {word, WAIT_CLASS_##class},
#include "words/wait_classes.def"
};

enum wait_class wait_class_of(trail_string word)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (text_is(word, rows[i].word))
            return rows[i].class;
    return WAIT_CLASS_UNKNOWN;
}
