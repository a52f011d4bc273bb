/* Names of descriptors of other processes: files, sockets by their addresses, pipes with the
 * processes at their other end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "collect/ends.h"

/* Writes "/var/log/x", "socket 127.0.0.1:80 to 127.0.0.1:1234", "pipe"; "descriptor 7" if nothing
 * is known. */
void descriptor_text(pid_t pid, int fd, char *text, size_t size);

/* Writes "12 (gzip)". */
void descriptor_process(pid_t pid, char *text, size_t size);

/*
 * Finds the processes with the other end of a pipe, or of a connection on this machine, and writes
 * which they are; "" if the descriptor is neither. They are not the only ones that can end a read
 * or write there if it has a time limit.
 */
void descriptor_peers(struct ends *ends, pid_t tid, int fd, bool is_write, struct peers *peers,
                      char *text, size_t size);

/* Writes the first few descriptors that an epoll descriptor waits for. */
void descriptor_polled(pid_t pid, int fd, char *text, size_t size);

/* Writes the first few operations that wait in an io_uring ring: "1 operation of io_uring: read
 * pipe"; else "io_uring". */
void descriptor_operations(pid_t pid, int fd, char *text, size_t size);

/* Returns the process that has locked the file of a descriptor (/proc/locks); 0: none, or not
 * known. */
pid_t descriptor_lock_holder(pid_t pid, int fd);
