/* Uses the board: see board.h. */
#include "preload/board.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "preload/call.h"

/* The kernel's number for the file system of POSIX message queues: statfs(2). */
#define QUEUES_MAGIC 0x19800202

struct shm_board *board;
bool board_of_several;

bool board_begins_several(void)
{
    const struct shm_area *area = preload.area;
    if (!board || board_of_several || !area || !area->header.children)
        return false;
    __atomic_store_n(&board->several, 1, __ATOMIC_RELEASE);
    board_of_several = true;
    return true;
}

/*
 * A process that is not the program was made unnoticed, by clone(2) or the like. A program that
 * this one executed in its place, as env(1) does, is still alone.
 */
static bool is_one_of_several(const struct shm_header *header)
{
    if (!header->children)
        return false;
    if (header->claimed != header->root_pid)
        __atomic_store_n(&board->several, 1, __ATOMIC_RELEASE);
    return __atomic_load_n(&board->several, __ATOMIC_ACQUIRE) != 0;
}

void board_join(const char *word, const struct shm_header *header)
{
    char path[64];
    struct stat status;
    int pid;
    if (board || !header->board || sscanf(word, "pid:%d:", &pid) != 1)
        return;
    snprintf(path, sizeof path, "/proc/%d/fd/%u", pid, (unsigned)header->board);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    struct shm_board *mapped =
        fstat(fd, &status) == 0 && (size_t)status.st_size >= sizeof *mapped
            ? mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
            : MAP_FAILED;
    close(fd);
    if (mapped == MAP_FAILED)
        return;
    if (mapped->magic == BOARD_MAGIC) {
        board = mapped;
        board_of_several = is_one_of_several(header);
    } else {
        munmap(mapped, sizeof *mapped);
    }
}

/* MARK: Waiting */

static struct board_object *object_on_board(uint64_t object)
{
    return &board->objects[shm_object_slot(object)];
}

/* Words are handed out in turn, so after many threads two may share one. */
static uint16_t own_word(void)
{
    if (UNLIKELY(!self.word))
        self.word = (uint16_t)(1 + __atomic_fetch_add(&board->words, 1, __ATOMIC_RELAXED) %
                                       (BOARD_THREADS - 1));
    return self.word;
}

static uint64_t word_at(uint16_t index)
{
    return __atomic_load_n(&board->waits[index % BOARD_THREADS], __ATOMIC_ACQUIRE);
}

/*
 * Adds the thread's word to the list, or replaces one that waits for nothing. If the list is full,
 * the wait will have no waker.
 */
static void enter(struct board_object *at, uint16_t mine)
{
    for (int i = 0; i < BOARD_WAITERS; i++) {
        uint16_t other = __atomic_load_n(&at->waiters[i], __ATOMIC_RELAXED);
        if (other == mine)
            return;
        if (other == 0)
            break;
    }
    for (int i = 0; i < BOARD_WAITERS; i++) {
        uint16_t other = __atomic_load_n(&at->waiters[i], __ATOMIC_RELAXED);
        if ((other == 0 || word_at(other) == 0) &&
            __atomic_compare_exchange_n(&at->waiters[i], &other, mine, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return;
    }
}

void board_waits(uint64_t object, uint64_t word)
{
    uint16_t mine = own_word();
    __atomic_store_n(&board->waits[mine], word, __ATOMIC_RELEASE);
    self.on_board = true;
    enter(object_on_board(object), mine);
}

void board_leaves(void)
{
    self.on_board = false;
    __atomic_store_n(&board->waits[self.word], 0, __ATOMIC_RELEASE);
}

bool board_awaits(uint64_t object)
{
    const struct board_object *at = object_on_board(object);
    for (int i = 0; i < BOARD_WAITERS; i++) {
        uint16_t index = __atomic_load_n(&at->waiters[i], __ATOMIC_ACQUIRE);
        uint64_t word = index ? word_at(index) : 0;
        if (index == 0)
            return false;
        if (index != self.word && (word == object || word == BOARD_POLLS))
            return true;
    }
    return false;
}

static void put_release(struct shm_record record, const struct unwind_start *caller)
{
    int old_errno = errno;
    if (!record_begin())
        return;
    record.kind = SHM_RELEASED;
    record.stack = stack_of(caller);
    record.time = clock_now();
    record.release = board_next_number(record.object, record.time);
    record_put(&record);
    record_end();
    errno = old_errno;
}

void board_release(uint64_t object, enum shm_wait kind, uint8_t flags,
                   const struct unwind_start *caller)
{
    if (board_awaits(object))
        put_release((struct shm_record){.object = object, .wait = (uint8_t)kind, .flags = flags},
                    caller);
}

void board_release_of(uint64_t object, enum shm_wait kind, uint64_t since, uint64_t object2,
                      const struct unwind_start *caller)
{
    if (board_awaits(object))
        put_release(
            (struct shm_record){
                .object = object, .wait = (uint8_t)kind, .end = since, .object2 = object2},
            caller);
}

void board_signal(uint64_t object, uint64_t sent, const struct unwind_start *caller)
{
    put_release((struct shm_record){.object = object, .wait = SHM_SIGNAL, .object2 = sent}, caller);
}

uint32_t board_next_number(uint64_t object, uint64_t time)
{
    struct board_object *at = object_on_board(object);
    uint32_t number = __atomic_add_fetch(&at->release, 1, __ATOMIC_ACQ_REL);
    __atomic_store_n(&at->released, time, __ATOMIC_RELEASE);
    return number;
}

uint32_t board_number(uint64_t object)
{
    return board ? __atomic_load_n(&object_on_board(object)->release, __ATOMIC_ACQUIRE) : 0;
}

bool board_released_since(uint64_t object, uint64_t time)
{
    return __atomic_load_n(&object_on_board(object)->released, __ATOMIC_ACQUIRE) >= time;
}

/* MARK: Identities */

static uint64_t of_inode(const struct stat *status)
{
    return board_mix(status->st_dev, status->st_ino);
}

/* Returns port and address in two words; false: not an IP address. */
static bool words_of(const struct sockaddr_storage *address, uint64_t words[2])
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint32_t part;
    if (address->ss_family == AF_INET) {
        words[0] = v4->sin_port;
        words[1] = v4->sin_addr.s_addr;
        return true;
    }
    if (address->ss_family != AF_INET6)
        return false;
    words[0] = v6->sin6_port;
    memcpy(&part, &v6->sin6_addr.s6_addr[12], sizeof part);
    words[1] = part;
    if (memcmp(&v6->sin6_addr, mapped, sizeof mapped) != 0) {
        uint64_t halves[2];
        memcpy(halves, &v6->sin6_addr, sizeof halves);
        words[1] = board_mix(halves[0], halves[1]);
    }
    return true;
}

/* A connection's local and peer addresses are the other end's peer and local addresses. */
static struct board_ends of_connection(int fd, int type, bool *settled)
{
    struct sockaddr_storage own = {0}, other = {0};
    socklen_t size = sizeof own, other_size = sizeof other;
    uint64_t a[2], b[2];
    if (getsockname(fd, (struct sockaddr *)&own, &size) != 0 ||
        getpeername(fd, (struct sockaddr *)&other, &other_size) != 0) {
        *settled = type == SOCK_DGRAM; /* not connected yet, or never */
        return (struct board_ends){0};
    }
    if (!words_of(&own, a) || !words_of(&other, b))
        return (struct board_ends){0};
    return (struct board_ends){.own = board_mix(board_mix(a[0], a[1]), board_mix(b[0], b[1])),
                               .peer = board_mix(board_mix(b[0], b[1]), board_mix(a[0], a[1])),
                               .endless = type == SOCK_DGRAM};
}

/* The recorder will soon find the peer of a socket that no recorded process made. */
static struct board_ends of_unix_socket(int fd, int type, const struct stat *status, bool *settled)
{
    struct sockaddr_storage other;
    socklen_t size = sizeof other;
    struct board_ends ends = {.own = of_inode(status), .endless = type == SOCK_DGRAM};
    if (getpeername(fd, (struct sockaddr *)&other, &size) != 0) {
        *settled = type == SOCK_DGRAM;
        return (struct board_ends){0};
    }
    ends.peer = board_peer(ends.own);
    if (!ends.peer) {
        uint32_t number = __atomic_fetch_add(&board->ask_count, 1, __ATOMIC_ACQ_REL);
        struct board_ask *ask = &board->asks[number % BOARD_ASKS];
        __atomic_store_n(&ask->inode, 0, __ATOMIC_RELEASE);
        ask->device = status->st_dev;
        __atomic_store_n(&ask->inode, status->st_ino, __ATOMIC_RELEASE);
    }
    return ends;
}

static struct board_ends of_socket(int fd, const struct stat *status, bool *settled)
{
    int domain = 0, type = 0;
    socklen_t size = sizeof domain, type_size = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) != 0)
        return (struct board_ends){0};
    if (domain == AF_UNIX)
        return of_unix_socket(fd, type, status, settled);
    if (type != SOCK_STREAM && type != SOCK_DGRAM)
        return (struct board_ends){0};
    return of_connection(fd, type, settled);
}

static bool is_message_queue(int fd)
{
    struct statfs system;
    return fstatfs(fd, &system) == 0 && system.f_type == QUEUES_MAGIC;
}

/* The kernel numbers eventfds: proc(5). */
static struct board_ends of_eventfd(int fd)
{
    char path[64], text[512];
    unsigned id;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    real_read_text(path, text, sizeof text);
    const char *number = strstr(text, "eventfd-id:");
    if (!number || sscanf(number, "eventfd-id: %u", &id) != 1)
        return (struct board_ends){0};
    uint64_t own = board_mix(BOARD_MAGIC, id);
    return (struct board_ends){own, own, .endless = true};
}

struct board_ends board_identify(int fd, bool *settled)
{
    struct board_ends ends = {0};
    struct stat status;
    int old_errno = errno;
    *settled = true;
    if (!is_confined() && fstat(fd, &status) == 0) {
        if (S_ISFIFO(status.st_mode))
            ends.own = ends.peer = of_inode(&status);
        else if (S_ISSOCK(status.st_mode))
            ends = of_socket(fd, &status, settled);
        else if (S_ISREG(status.st_mode) && is_message_queue(fd))
            ends = (struct board_ends){of_inode(&status), of_inode(&status), .endless = true};
        else if ((status.st_mode & S_IFMT) == 0)
            ends = of_eventfd(fd);
    }
    errno = old_errno;
    return ends;
}

static struct board_pair *pair_at(uint64_t end)
{
    return &board->pairs[end % BOARD_PAIRS];
}

uint64_t board_peer(uint64_t own)
{
    const struct board_pair *pair = pair_at(own);
    uint64_t peer;
    if (__atomic_load_n(&pair->end, __ATOMIC_ACQUIRE) != own)
        return 0;
    peer = __atomic_load_n(&pair->peer, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&pair->end, __ATOMIC_ACQUIRE) == own ? peer : 0;
}

void board_identify_pair(const int fds[2], struct board_ends *first, struct board_ends *second)
{
    bool settled;
    *first = board_identify(fds[0], &settled);
    *second = board_identify(fds[1], &settled);
    if (first->own == second->own) /* a pipe */
        return;
    first->peer = second->own;
    second->peer = first->own;
    board_publish(board, first->own, first->peer);
    board_publish(board, second->own, second->peer);
}
