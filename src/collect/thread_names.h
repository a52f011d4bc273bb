/* Names of threads, by their start routine or by what a runtime gave them to run. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct collect;
struct thread;

/* The stack that names a goroutine: its thread's name, or its start routine; the latter alone. */
uint64_t thread_name_stack(struct collect *c, const struct thread *thread);
uint64_t thread_name_routine(struct collect *c, const struct thread *thread);

/* Writes the name as text; empty: not known. */
void thread_name_text(struct collect *c, const struct thread *thread, char *text, size_t size);
