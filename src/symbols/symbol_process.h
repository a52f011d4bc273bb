/*
 * The process that reads programs for this one: what a hostile file does to libdw, or to the kernel
 * when it is read, happens there (confine.h). It starts with the first question, and again with the
 * first one after it has ended.
 */
#pragma once

#include <stdint.h>

struct message;
struct symbol_process;

/* Returns NULL if out of memory. symbol_process_close accepts NULL. */
struct symbol_process *symbol_process_open(void);
void symbol_process_close(struct symbol_process *process);

/*
 * Starts it if it does not run. Returns how many times it has been started: files that were opened
 * before are not open if that changes. 0: it cannot be started.
 */
uint64_t symbol_process_start(struct symbol_process *process);

/* Ends it. */
void symbol_process_stop(struct symbol_process *process);

/*
 * Asks a question, and waits for the answer at most *left_ns, from which the time is subtracted.
 * Returns NULL, or the problem, valid until the next call; the process has ended then.
 */
const char *symbol_process_ask(struct symbol_process *process, struct message *question,
                               struct message *answer, int64_t *left_ns);
