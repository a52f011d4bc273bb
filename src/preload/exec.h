/* The environment of what the program executes: the recorder is put back where another LD_PRELOAD has replaced it. */
#ifndef TRAIL_PRELOAD_EXEC_H
#define TRAIL_PRELOAD_EXEC_H

#include <stddef.h>
#include <stdint.h>

/* Keeps what this process's LD_PRELOAD has of the recorder; called once, when the library is loaded. */
void exec_prepare(void);

/* An environment with the recorder in it. The memory is of mmap: the stack may be small, and malloc is not for vfork. */
struct exec_joined {
    char *const *environment;
    void *room; /* NULL: the environment is the given one */
    size_t size;
};

/* Async-signal-safe. Without memory the result is the given environment. */
struct exec_joined exec_join(char *const *environment);
void exec_unjoin(struct exec_joined *joined);

/* Declares `joined`, for the environment `given`; freed at the end of the block. Keeps errno. */
#define EXEC_JOINED(given)                                                                         \
    struct exec_joined joined __attribute__((cleanup(exec_unjoin))) = exec_join(given)

/* Reports a program, given by its file, that was executed in another process to the recorder. Async-signal-safe. */
void exec_note(uint32_t pid, const char *file);

#endif
