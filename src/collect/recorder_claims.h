/* The spare area, the process that claims it, and what is known about recorded processes. */
#pragma once

#include "collect/recorder_state.h"

/* Makes another spare, under the same descriptor. */
bool recorder_make_spare(struct recorder *r, trail_error *err);
/* Gives the spare to the process that has claimed it, and makes another. */
void recorder_hand_out(struct recorder *r);
/* The same without making another: the recording ends. */
void recorder_look_at_spare(struct recorder *r);

bool recorder_process_has_ended(const struct recorder *r, const struct recorded *process);
/* Reads a process's title and its CPU time. */
void recorder_process_read_cpu(struct recorded *process);
void recorder_process_look_at(const struct recorder *r, struct recorded *process);
/* Gives a process that ended before its title could be read the name of its program's file, which
 * the area contains. */
void recorder_process_title_by_program(const struct recorder *r, struct recorded *process,
                                       const struct area *area);
/* Lists the programs that the process has executed in child processes. */
void recorder_process_take_executed(struct recorder *r, struct recorded *process);
void recorder_process_close_pidfd(struct recorded *process);
void recorder_process_free(const struct recorder *r, struct recorded *process);

/* Looks for programs that recorded processes have started and that have not loaded the recorder. */
void recorder_look_for_missed(struct recorder *r);
