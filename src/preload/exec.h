/* The environment of executed programs: puts the recorder back where LD_PRELOAD was replaced. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Remembers the recorder's entries in LD_PRELOAD. Called once, when the library is loaded. */
void exec_prepare(void);

/*
 * An environment with the recorder in it. After vfork malloc is forbidden and a mapping would leak
 * into the parent, so environments up to this size are on the caller's stack; larger ones are
 * mapped.
 */
#define EXEC_ON_STACK 8192

struct exec_joined {
    char *const *environment;
    void *mapped; /* NULL: it is on the stack, or unchanged */
    size_t size;
};

/* Returns the size of the new environment; 0: unchanged. All are async-signal-safe. */
size_t exec_join_size(char *const *environment);

/* `room` has `size` bytes up to EXEC_ON_STACK. If out of memory, the environment is unchanged. */
struct exec_joined exec_join(char *const *environment, void *room, size_t size);
void exec_unjoin(struct exec_joined *joined);

/* Declares `joined`, made from the environment `given`, until the function returns. Keeps errno. */
#define EXEC_JOINED(given)                                                                         \
    size_t join_size = exec_join_size(given);                                                      \
    void *join_room = __builtin_alloca(join_size <= EXEC_ON_STACK ? join_size + 1 : 1);            \
    struct exec_joined joined __attribute__((cleanup(exec_unjoin))) =                              \
        exec_join(given, join_room, join_size)

/* Reports to the recorder that process `pid` executed `file`. Async-signal-safe. */
void exec_note(uint32_t pid, const char *file);
