/* Names of descriptors of other processes: files, sockets by their addresses, pipes with the
 * process at their other end. */
#ifndef TRAIL_STUCK_DESCRIPTORS_H
#define TRAIL_STUCK_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Writes "/var/log/x", "socket 127.0.0.1:80 to 127.0.0.1:1234", "pipe"; "descriptor 7" if nothing
 * is known. */
void descriptor_text(pid_t pid, int fd, char *text, size_t size);

/* Writes which process has the other end of a pipe, or of a connection on this machine; "" if not
 * known. */
void descriptor_peer(pid_t pid, int fd, char *text, size_t size);

/* Writes the descriptors that an epoll descriptor waits for, the first few. */
void descriptor_polled(pid_t pid, int fd, char *text, size_t size);

/* Writes the operations that wait in a ring of io_uring, the first few: "1 operation of io_uring:
 * read pipe"; else "io_uring". */
void descriptor_operations(pid_t pid, int fd, char *text, size_t size);

/* Returns the process that has locked the file of a descriptor (/proc/locks); 0: none, or not
 * known. */
pid_t descriptor_lock_holder(pid_t pid, int fd);

#endif
