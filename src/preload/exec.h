/* The environment of what the program executes: the recorder is put back where another LD_PRELOAD has replaced it. */
#ifndef TRAIL_PRELOAD_EXEC_H
#define TRAIL_PRELOAD_EXEC_H

#include <stddef.h>
#include <stdint.h>

/* Keeps what this process's LD_PRELOAD has of the recorder; called once, when the library is loaded. */
void exec_prepare(void);

/*
 * An environment with the recorder in it. Malloc is not for vfork, and what is mapped there stays the parent's: it is on the
 * stack of the caller up to this size, and mapped above it.
 */
#define EXEC_ON_STACK 8192

struct exec_joined {
    char *const *environment;
    void *mapped; /* NULL: on the stack, or the given one */
    size_t size;
};

/* Returns how much room the new environment needs; 0: the given one stays. Async-signal-safe, as all of these. */
size_t exec_join_size(char *const *environment);

/* `room` has `size` bytes, unless that is more than EXEC_ON_STACK. Without memory the result is the given environment. */
struct exec_joined exec_join(char *const *environment, void *room, size_t size);
void exec_unjoin(struct exec_joined *joined);

/* Declares `joined`, for the environment `given`, until the end of the function. Keeps errno. */
#define EXEC_JOINED(given)                                                                         \
    size_t join_size = exec_join_size(given);                                                      \
    void *join_room = __builtin_alloca(join_size <= EXEC_ON_STACK ? join_size + 1 : 1);            \
    struct exec_joined joined __attribute__((cleanup(exec_unjoin))) =                              \
        exec_join(given, join_room, join_size)

/* Reports a program, given by its file, that was executed in another process to the recorder. Async-signal-safe. */
void exec_note(uint32_t pid, const char *file);

#endif
