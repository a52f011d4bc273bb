/* Questions and answers about symbols: see message.h. A message begins with its size in bytes. */
#include "symbols/message.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"

#define MOST_BYTES  ((size_t)16 << 20)
#define FIRST_BYTES ((size_t)4096) /* of the buffer, in which most messages fit */

static void put(struct message *message, const void *data, size_t size)
{
    message->failed |= size > MOST_BYTES - message->size ||
                       !GROW(message->data, message->capacity, message->size + size);
    if (message->failed || size == 0)
        return;
    memcpy(message->data + message->size, data, size);
    message->size += size;
}

/* Without a buffer, the first put fails. */
void message_clear(struct message *message)
{
    uint64_t size = 0;
    message->size = message->at = 0;
    message->failed = false;
    put(message, &size, sizeof size);
    message->at = message->size;
}

void message_free(struct message *message)
{
    free(message->data);
    *message = (struct message){0};
}

/* MARK: Content */

void message_put_number(struct message *message, uint64_t number)
{
    put(message, &number, sizeof number);
}

void message_put_text(struct message *message, const char *text, size_t size)
{
    message_put_number(message, size);
    put(message, text, size);
}

void message_put_word(struct message *message, const char *word)
{
    message_put_text(message, word, strlen(word));
}

/* Returns the next `size` bytes; NULL if there are fewer. */
static const unsigned char *take(struct message *message, uint64_t size)
{
    message->failed |= size > message->size - message->at;
    if (message->failed)
        return NULL;
    const unsigned char *data = message->data + message->at;
    message->at += size;
    return data;
}

uint64_t message_number(struct message *message)
{
    uint64_t number = 0;
    const unsigned char *data = take(message, sizeof number);
    if (data)
        memcpy(&number, data, sizeof number);
    return number;
}

trail_string message_text(struct message *message)
{
    size_t size = message_number(message);
    const unsigned char *data = take(message, size);
    return data ? (trail_string){(const char *)data, size} : (trail_string){"", 0};
}

/* MARK: Transport */

bool message_send(struct message *message, int fd)
{
    uint64_t size;
    if (message->failed)
        message_clear(message);
    if (message->failed)
        return false;
    size = message->size;
    memcpy(message->data, &size, sizeof size);
    for (size_t done = 0; done < size;) {
        ssize_t n = send(fd, message->data + done, size - done, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Waits until there is something to read. Returns 0, or 1 if it is too late. */
static int wait_for(int fd, int64_t until)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int n;
    do {
        int64_t ms = (until - now_ns()) / 1000000;
        n = poll(&ready, 1, ms > INT32_MAX ? INT32_MAX : ms < 0 ? 0 : (int)ms);
    } while (n < 0 && errno == EINTR);
    return n == 0;
}

/* Returns how many bytes the message has, 0: that is not known yet, SIZE_MAX: it cannot be one. */
static size_t whole_size(const struct message *message)
{
    uint64_t size;
    if (message->size < sizeof size)
        return 0;
    memcpy(&size, message->data, sizeof size);
    return size < sizeof size || size > MOST_BYTES || size < message->size ? SIZE_MAX : size;
}

int message_receive(struct message *message, int fd, int64_t until)
{
    size_t whole = 0;
    *message = (struct message){.data = message->data, .capacity = message->capacity};
    while (whole == 0 || message->size < whole) {
        if (!GROW(message->data, message->capacity, whole ? whole : FIRST_BYTES))
            return -1;
        if (until != INT64_MAX && wait_for(fd, until))
            return 1;
        ssize_t n = read(fd, message->data + message->size, message->capacity - message->size);
        if (n == 0 || (n < 0 && errno != EINTR))
            return -1;
        message->size += n > 0 ? (size_t)n : 0;
        whole = whole_size(message);
        if (whole == SIZE_MAX)
            return -1;
    }
    message->at = sizeof(uint64_t);
    return 0;
}
