/* Questions and answers about symbols: see message.h. On the socket, each has its size before it. */
#include "symbols/message.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"

#define MOST_BYTES ((size_t)16 << 20)

void message_clear(struct message *message)
{
    message->size = message->at = 0;
    message->failed = false;
}

void message_free(struct message *message)
{
    free(message->data);
    *message = (struct message){0};
}

/* MARK: Content */

static void put(struct message *message, const void *data, size_t size)
{
    message->failed |= size > MOST_BYTES - message->size ||
                       !GROW(message->data, message->capacity, message->size + size);
    if (message->failed || size == 0)
        return;
    memcpy(message->data + message->size, data, size);
    message->size += size;
}

void message_put_number(struct message *message, uint64_t number)
{
    put(message, &number, sizeof number);
}

void message_put_text(struct message *message, const char *text, size_t size)
{
    message_put_number(message, size);
    put(message, text, size);
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

static bool send_all(int fd, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = send(fd, (const char *)data + done, size - done, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool message_send(const struct message *message, int fd)
{
    uint64_t size = message->failed ? 0 : message->size;
    return send_all(fd, &size, sizeof size) && send_all(fd, message->data, size);
}

/* Waits until there is something to read. Returns 0, or 1 if it is too late. */
static int wait_for(int fd, int64_t until)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int n;
    do {
        int64_t ms = (until - now_ns()) / 1000000;
        n = poll(&ready, 1, until == INT64_MAX || ms > INT32_MAX ? -1 : ms < 0 ? 0 : (int)ms);
    } while (n < 0 && errno == EINTR);
    return n == 0;
}

static int receive_all(int fd, void *data, size_t size, int64_t until)
{
    for (size_t done = 0; done < size;) {
        if (wait_for(fd, until))
            return 1;
        ssize_t n = read(fd, (char *)data + done, size - done);
        if (n == 0 || (n < 0 && errno != EINTR))
            return -1;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int message_receive(struct message *message, int fd, int64_t until)
{
    uint64_t size;
    message_clear(message);
    int result = receive_all(fd, &size, sizeof size, until);
    if (result != 0)
        return result;
    if (size > MOST_BYTES || !GROW(message->data, message->capacity, size))
        return -1;
    message->size = size;
    return receive_all(fd, message->data, size, until);
}
