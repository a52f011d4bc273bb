/*
 * The recording of a program and, optionally, of its children: which process has which area, and
 * which processes share a trace: all of them, or none.
 *
 * One area is always spare: the variable in the program's environment names the recorder's file
 * descriptor of the spare area. The process that claims the area (the program at its start, a
 * program that it executes, or a child) keeps it, and the descriptor then refers to the next spare.
 */
#pragma once

#include "collect/recorder_snapshots.h"

/*
 * False with *err; the caller calls recorder_close in any case. If an option asks for something
 * that is not possible here, the code is TRAIL_USAGE and the message names the option.
 */
bool recorder_open(struct recorder *r, const struct recorder_options *options, trail_error *err);

/* Writes the value of the variable SHM_VARIABLE. */
void recorder_variable(const struct recorder *r, char *text, size_t size);

/* Announces what a thread of a running process waits for, before the process joins; drops all
 * announcements. */
void recorder_announce_thread(struct recorder *r, const struct shm_waiting *waiting);
void recorder_forget_threads(struct recorder *r);

/* Called in the new process before it executes the program. */
void recorder_announce(void *recorder);

/* Takes and writes what is available, and assigns areas; called every few milliseconds. */
void recorder_step(struct recorder *r);

/* Returns the time until the next call of recorder_step. */
int64_t recorder_pause_ns(const struct recorder *r);

/* Ends the recording while the program continues: steps do nothing from now on. */
void recorder_stop(struct recorder *r);

/* The program has ended; processes that it started may continue. */
void recorder_program_ended(struct recorder *r);

/* Whether a process other than the program was recorded, or is about to be. */
bool recorder_has_others(const struct recorder *r);

/* Whether a process is still recorded, or is about to be. */
bool recorder_goes_on(const struct recorder *r);

/* The program has ended: completes all traces. */
void recorder_finish(struct recorder *r);
void recorder_close(struct recorder *r);
