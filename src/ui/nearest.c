/* Suggests the name that was probably meant. */
#include "ui/nearest.h"

#include <stdio.h>
#include <string.h>

#include "ui/options.h"

void nearest_offer(struct nearest *nearest, trail_string name)
{
    char text[sizeof nearest->name];
    size_t size = name.size < sizeof text - 1 ? name.size : sizeof text - 1;
    if (size == 0)
        return;
    memcpy(text, name.data, size);
    text[size] = '\0';
    unsigned distance = strstr(text, nearest->word) ? 0 : edit_distance(nearest->word, text);
    if (nearest->found && distance >= nearest->distance)
        return;
    nearest->found = true;
    nearest->distance = distance;
    memcpy(nearest->name, text, size + 1);
}

const char *nearest_hint(struct nearest *nearest)
{
    if (!nearest->found)
        return "";
    (void)snprintf(nearest->hint, sizeof nearest->hint, "; did you mean '%s'?", nearest->name);
    return nearest->hint;
}
