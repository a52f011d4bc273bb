/* See fit.h. */
#include "ui/fit.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Tables are unreadable in fewer columns. */
#define LEAST 40

int fit_columns(void)
{
    const char *set = getenv("COLUMNS");
    long wanted = set ? strtol(set, NULL, 10) : 0;
    struct winsize size;
    if (wanted <= 0 && isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        wanted = size.ws_col;
    if (wanted <= 0 || wanted > INT_MAX)
        return INT_MAX;
    return wanted < LEAST ? LEAST : (int)wanted;
}
