/*
 * The seccomp filters that a container's runtime has installed: seccomp(2). All processes of the
 * container have them, trail too, so that what they allow can be tried.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Whether the filters of a thread that has some are its container's alone, and trail's own as well,
 * and allow restart_syscall(2).
 */
bool container_lets_restart(pid_t tid);
