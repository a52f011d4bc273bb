/* Names of the traces in a file that has several. */
#include "base/part_name.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DIGITS = 9 };

bool part_name_parse(const char *word, struct part_name *part)
{
    const char *mark = strrchr(word, '#');
    if (!mark || mark == word || (size_t)(mark - word) >= sizeof part->file)
        return false;
    size_t digits = strspn(mark + 1, "0123456789");
    if (mark[1] == '0' || digits == 0 || digits > MOST_DIGITS || mark[1 + digits] ||
        access(word, F_OK) == 0)
        return false;
    memcpy(part->file, word, (size_t)(mark - word));
    part->file[mark - word] = '\0';
    part->number = (unsigned)strtoul(mark + 1, NULL, 10);
    return access(part->file, F_OK) == 0;
}
