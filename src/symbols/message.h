/*
 * Questions to the process that reads programs, and its answers: numbers and texts in an agreed
 * order. Both sides come from the same build. The process may have been taken over by a file that
 * it read: reading a message checks everything, and fails beyond its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/read.h>

/* Zero-initialized: to be cleared or received. */
struct message {
    unsigned char *data;
    size_t size, capacity;
    size_t at;   /* the next byte to read */
    bool failed; /* out of memory, too large, or read beyond its end */
};

/* What is asked. The comments: what follows in the question; -> in the answer. */
enum question {
    QUESTION_OPEN,   /* path, build ID, detail -> error code, its text, has lines, file */
    QUESTION_FRAMES, /* file, address -> count, and of each: function, path, line */
    QUESTION_OBJECT, /* file, address -> name, offset; "": none */
    QUESTION_GUARDS, /* file, address -> count, and of each: offset, wait, whether from CFA */
    QUESTION_FIND,   /* file, address -> found, function, path, line */
};

/* Every answer ends with the problem and the path of the file that was refused (named_files.h). */

/* Makes the message empty. */
void message_clear(struct message *message);
void message_free(struct message *message);

void message_put_number(struct message *message, uint64_t number);
void message_put_text(struct message *message, const char *text, size_t size);
void message_put_word(struct message *message, const char *word);

/* The next number and the next text; 0 and "" if the message failed. */
uint64_t message_number(struct message *message);
trail_string message_text(struct message *message);

/* Returns false if the other side is gone. A failed message is sent as an empty one. */
bool message_send(struct message *message, int fd);

/*
 * Waits for a message until the monotonic clock is `until` ns; INT64_MAX: forever. Returns 0; -1:
 * the other side is gone, or sent a message that is too large; 1: too late.
 */
int message_receive(struct message *message, int fd, int64_t until);
