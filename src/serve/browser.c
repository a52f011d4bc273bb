/* Opens the first URL in a browser. */
#include "serve/browser.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Returns a folder that only the user can enter, if there is one. */
static const char *folder(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
    if (runtime && *runtime == '/')
        return runtime;
    return temporary && *temporary ? temporary : "/tmp";
}

static int write_page(struct browser *browser, const char *url)
{
    static const char suffix[] = ".html";
    int size =
        snprintf(browser->page, sizeof browser->page, "%s/trail-view-XXXXXX%s", folder(), suffix);
    int fd = -1, code = ENAMETOOLONG;
    if (size > 0 && (size_t)size < sizeof browser->page) {
        fd = mkostemps(browser->page, sizeof suffix - 1, O_CLOEXEC); /* mode 0600 */
        code = errno;
    }
    if (fd < 0) {
        browser->page[0] = '\0';
        return code;
    }
    code = dprintf(fd,
                   "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n"
                   "<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n"
                   "<title>trail</title>\n<a href=\"%s\">Open the trace</a>\n",
                   url, url) < 0
               ? errno
               : 0;
    (void)close(fd);
    return code;
}

int browser_open(struct browser *browser, const char *url)
{
    extern char **environ;
    char program[] = "xdg-open";
    char *argv[] = {program, browser->page, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int code;
    browser->page[0] = '\0';
    if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY"))
        return 0;
    code = write_page(browser, url);
    if (code == 0)
        code = posix_spawn_file_actions_init(&actions);
    if (code != 0)
        return code;
    code = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (code == 0)
        code = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (code == 0)
        code = posix_spawnp(&pid, program, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return code;
}

void browser_close(const struct browser *browser)
{
    if (browser->page[0])
        (void)unlink(browser->page);
}
