#include "commands/viewer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ui/cli.h"

/* In its own process group: Ctrl-C is for the program, and the viewer remains afterwards. */
static int spawn(pid_t *pid, const char *path, const char *skip_frames, int stdin_fd)
{
    extern char **environ;
    char name[] = "trail", view[] = "view", follow[] = "--follow", end[] = "--";
    char skip[] = "--skip-frames";
    char *all[] = {name, view, follow, skip, (char *)(size_t)skip_frames, end, (char *)(size_t)path,
                   NULL};
    char *some[] = {name, view, follow, end, (char *)(size_t)path, NULL};
    char **argv = skip_frames ? all : some;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    (void)sigemptyset(&none);
    int reason = posix_spawn_file_actions_init(&actions);
    if (reason != 0)
        return reason;
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_adddup2(&actions, stdin_fd, STDIN_FILENO);
    /* stdout is the recorded program's */
    (void)posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    reason = posix_spawn(pid, "/proc/self/exe", &actions, &attributes, argv, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return reason;
}

void viewer_start(struct viewer *viewer, const char *path, const char *skip_frames)
{
    int ends[2];
    int reason = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
    if (reason == 0) {
        reason = spawn(&viewer->pid, path, skip_frames, ends[0]);
        (void)close(ends[0]);
        viewer->writes = ends[1];
    }
    if (reason == 0)
        return;
    viewer->pid = 0;
    print_message("cannot start the viewer: %s", strerror(reason));
}

void viewer_finish(struct viewer *viewer)
{
    sigset_t waited;
    if (viewer->pid == 0)
        return;
    (void)close(viewer->writes);
    (void)sigemptyset(&waited);
    (void)sigaddset(&waited, SIGCHLD);
    (void)sigaddset(&waited, SIGINT);
    (void)sigaddset(&waited, SIGTERM);
    (void)sigaddset(&waited, SIGHUP);
    while (waitpid(viewer->pid, NULL, WNOHANG) == 0) {
        struct timespec second = {.tv_sec = 1};
        int number = sigtimedwait(&waited, NULL, &second);
        if (number > 0 && number != SIGCHLD)
            (void)kill(viewer->pid, SIGTERM);
    }
    viewer->pid = 0;
}
