/* Runs a tool whose output is imported: see tool.h. */
#include "import/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

extern char **environ;

/* Starts it with `out` as its output. Returns 0 or an error number. */
static int spawn(struct tool *tool, char *const *argv, int out)
{
    posix_spawn_file_actions_t actions;
    int reason = posix_spawn_file_actions_init(&actions);
    if (reason != 0)
        return reason;
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, out, 1);
    (void)posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    reason = posix_spawnp(&tool->pid, argv[0], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return reason;
}

trail_source *tool_start(struct tool *tool, char *const *argv, trail_error *err)
{
    int ends[2];
    trail_source *source = NULL;
    *tool = (struct tool){.name = argv[0], .fd = -1};
    if (pipe2(ends, O_CLOEXEC) < 0) {
        (void)error_set(err, TRAIL_IO, "cannot start %s: %s", argv[0], strerror(errno));
        return NULL;
    }
    int reason = spawn(tool, argv, ends[1]);
    (void)close(ends[1]);
    if (reason == 0) {
        tool->fd = ends[0];
        source = trail_source_open_fd(ends[0], err);
    } else {
        tool->pid = 0;
        (void)close(ends[0]);
        (void)error_set(err, TRAIL_IO, "cannot start %s: %s", argv[0], strerror(reason));
        errno = reason;
    }
    return source;
}

int tool_end(struct tool *tool, bool read, trail_error *err)
{
    int status = 0;
    if (tool->pid == 0)
        return 0;
    (void)close(tool->fd); /* a tool that is still writing is ended by SIGPIPE */
    while (waitpid(tool->pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!read || status == 0)
        return 0;
    return error_set(err, TRAIL_IO, "%s could not read it: exit status %d", tool->name,
                     WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
