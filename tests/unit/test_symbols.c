/*
 * Symbols from a process that reads files, with one that misbehaves (a server of this test's own):
 * whatever it does, this process goes on, and the reason is reported. And what a confined process
 * cannot do.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "symbols/confine.h"
#include "symbols/guards.h"
#include "symbols/message.h"
#include "symbols/named_files.h"
#include "symbols/symbol_process.h"
#include "symbols/symbol_server.h"
#include "symbols/symbols.h"

/* MARK: The server */

/* Opens every file; its number is the first letter of its path, which decides what questions about
 * it do. */
static void open_file(struct message *question, struct message *answer)
{
    trail_string path = message_text(question);
    message_put_number(answer, TRAIL_OK);
    message_put_word(answer, "");
    message_put_number(answer, 1);
    message_put_number(answer, (unsigned char)path.data[0]);
}

/* Another number with each answer about the file "known". */
static uint64_t number_of(uint64_t file)
{
    static uint64_t answers;
    return file == 'k' ? ++answers : 7;
}

static void put_frames(uint64_t file, struct message *answer)
{
    message_put_number(answer, file == 'm' ? SYMBOLS_FRAMES + 1 : 1);
    message_put_word(answer, "function");
    message_put_word(answer, "file.c");
    message_put_number(answer, number_of(file));
}

static void put_guards(uint64_t file, struct message *answer)
{
    message_put_number(answer, 1);
    message_put_number(answer, number_of(file));
    message_put_number(answer, file == 'w' ? WIRE_LOGS : 1);
    message_put_number(answer, 1);
}

static void answer_about(enum question what, uint64_t file, struct message *answer)
{
    if (file == 'c')
        __builtin_trap();
    if (what == QUESTION_FRAMES)
        put_frames(file, answer);
    if (what == QUESTION_GUARDS)
        put_guards(file, answer);
    if (what == QUESTION_OBJECT) {
        message_put_word(answer, "variable");
        message_put_number(answer, number_of(file));
    }
}

void symbol_server_run(int fd)
{
    struct message question = {0}, answer = {0};
    while (message_receive(&question, fd, INT64_MAX) == 0) {
        enum question what = (enum question)message_number(&question);
        uint64_t file = 0;
        message_clear(&answer);
        if (what == QUESTION_OPEN)
            open_file(&question, &answer);
        else
            answer_about(what, file = message_number(&question), &answer);
        if (file != 's') /* a short answer */
            message_put_word(&answer, file == 'r' ? "is a device" : "");
        message_put_word(&answer, file == 'r' ? "/dev/other" : "");
        if (!message_send(&answer, fd))
            break;
    }
}

/* named_files.c notes only the first file; this, the last. */
static struct refused_file refused;

void named_files_refuse(const char *path, const char *problem)
{
    (void)snprintf(refused.path, sizeof refused.path, "%s", path);
    (void)snprintf(refused.problem, sizeof refused.problem, "%s", problem);
}

/* Reading in this process is what test `symbolize` of the command and recordings are for. */
struct elf_symbols *elf_symbols_open(const char *path, const char *wanted,
                                     enum symbols_detail detail, trail_error *err)
{
    (void)path, (void)wanted, (void)detail, (void)err;
    return NULL;
}

void elf_symbols_close(struct elf_symbols *symbols)
{
    assert_null(symbols);
}

bool elf_symbols_have_lines(const struct elf_symbols *symbols)
{
    (void)symbols;
    return false;
}

size_t elf_symbols_frames(struct elf_symbols *symbols, uint64_t address,
                          const trail_symbol **frames)
{
    (void)symbols, (void)address, (void)frames;
    return 0;
}

const char *elf_symbols_object(struct elf_symbols *symbols, uint64_t address, uint64_t *offset)
{
    (void)symbols, (void)address, (void)offset;
    return NULL;
}

size_t elf_symbols_guards(struct elf_symbols *symbols, uint64_t address, struct guard *guards,
                          size_t max)
{
    (void)symbols, (void)address, (void)guards, (void)max;
    return 0;
}

bool elf_symbols_find(struct elf_symbols *symbols, uint64_t pc, const char **function,
                      const char **file, uint64_t *line)
{
    (void)symbols, (void)pc, (void)function, (void)file, (void)line;
    return false;
}

/* MARK: Tests */

static struct symbols *opened(struct symbol_process *process, const char *path)
{
    trail_error err;
    struct symbols *symbols = symbols_open(process, path, NULL, SYMBOLS_LINES, &err);
    assert_non_null(symbols);
    assert_true(symbols_have_lines(symbols));
    return symbols;
}

/* At another address each time, of which the process has to be asked. */
static void expect_frame(struct symbols *symbols)
{
    static uint64_t address;
    const trail_symbol *frames;
    assert_int_equal(symbols_frames(symbols, ++address, &frames), 1);
    assert_string_equal(frames->function.data, "function");
    assert_string_equal(frames->file.data, "file.c");
    assert_int_equal(frames->line, 7);
}

/*
 * A file that ends or spoils the process has no names; another one is opened again, and has them.
 */
static void expect_lost(const char *path, const char *problem)
{
    struct symbol_process *process = symbol_process_open();
    struct symbols *bad = opened(process, path), *good = opened(process, "good");
    const trail_symbol *frames;
    struct guard guards[GUARDS_MOST];
    expect_frame(good);
    refused = (struct refused_file){0};
    if (*path == 'w')
        assert_int_equal(symbols_guards(bad, 1, guards, GUARDS_MOST), 0);
    else
        assert_int_equal(symbols_frames(bad, 1, &frames), 0);
    assert_string_equal(refused.path, path);
    assert_non_null(strstr(refused.problem, problem));
    expect_frame(good);
    assert_int_equal(symbols_frames(bad, 1, &frames), 0);
    expect_frame(good);
    symbols_close(bad);
    symbols_close(good);
    symbol_process_close(process);
}

TEST(test_crash)
{
    expect_lost("crash", "the process that read it ended: "); /* and the signal */
}

TEST(test_answers_that_are_not_valid)
{
    expect_lost("many frames", "no valid answer");
    expect_lost("short", "no valid answer");
    expect_lost("wrong kind of wait", "no valid answer");
}

TEST(test_no_time_left)
{
    trail_error err;
    assert_int_equal(setenv("TRAIL_SYMBOLS_SECONDS", "0", 1), 0);
    assert_null(symbols_open(NULL, "slow", NULL, SYMBOLS_LINES, &err));
    assert_int_equal(unsetenv("TRAIL_SYMBOLS_SECONDS"), 0);
    assert_non_null(strstr(err.message, "too long"));
    assert_string_equal(refused.path, "slow");
}

TEST(test_message_that_does_not_come)
{
    struct message message = {0};
    uint64_t size = sizeof size + 1;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(message_receive(&message, ends[0], 0), 1);
    assert_int_equal(write(ends[1], &size, sizeof size), sizeof size); /* but not its content */
    assert_int_equal(message_receive(&message, ends[0], 0), 1);
    size = UINT64_MAX;
    assert_int_equal(write(ends[1], &size, sizeof size), sizeof size);
    assert_int_equal(message_receive(&message, ends[0], 0), -1);
    (void)close(ends[1]);
    assert_int_equal(message_receive(&message, ends[0], INT64_MAX), -1);
    (void)close(ends[0]);
    message_free(&message);
}

TEST(test_refused_file)
{
    struct symbols *symbols = opened(NULL, "refuses another");
    expect_frame(symbols);
    assert_string_equal(refused.path, "/dev/other");
    assert_string_equal(refused.problem, "is a device");
    symbols_close(symbols);
}

TEST(test_guards)
{
    struct symbols *symbols = opened(NULL, "good");
    struct guard guard;
    assert_int_equal(symbols_guards(symbols, 1, &guard, 1), 1);
    assert_int_equal(guard.offset, 7);
    assert_int_equal(guard.wait, 1);
    assert_true(guard.from_cfa);
    symbols_close(symbols);
}

/* A second question is not asked: threads are often at the same places. */
TEST(test_known_answers)
{
    struct symbols *symbols = opened(NULL, "known");
    const trail_symbol *frames;
    struct guard guard;
    uint64_t offset = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(symbols_frames(symbols, 1, &frames), 1);
        assert_int_equal(frames->line, 1);
        assert_int_equal(symbols_guards(symbols, 1, &guard, 1), 1);
        assert_int_equal(guard.offset, 2);
        assert_string_equal(symbols_object(symbols, 1, &offset), "variable");
        assert_int_equal(offset, 3);
    }
    symbols_close(symbols);
}

/* In a confined process: sends what it could do, a bit each. */
static void try_everything(int fd)
{
    char byte;
    uint64_t done = 0;
    pid_t parent = getppid();
    int own = fd != CONFINE_FD && confine(fd) ? openat(AT_FDCWD, "/proc/self/exe", O_RDONLY) : -1;
    done |= own >= 0 && read(own, &byte, 1) == 1;
    done |= (uint64_t)(openat(AT_FDCWD, "/dev/null", O_WRONLY) >= 0) << 1;
    done |= (uint64_t)(openat(AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, 0600) >= 0) << 2;
    done |= (uint64_t)(socket(AF_UNIX, SOCK_STREAM, 0) >= 0) << 3;
    done |= (uint64_t)(fork() >= 0) << 4;
    done |= (uint64_t)(kill(parent, 0) == 0) << 5;
    done |= (uint64_t)(fcntl(CONFINE_FD, F_SETOWN, 1) == 0) << 6;
    done |= (uint64_t)(unlink("/nonexistent/file") != 0 && errno == ENOENT) << 7;
    done |= (uint64_t)(fcntl(fd, F_GETFD) >= 0) << 8; /* open before */
    (void)send(CONFINE_FD, &done, sizeof done, MSG_NOSIGNAL);
    _exit(0);
}

TEST(test_confined)
{
    int ends[2], status;
    uint64_t done = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t pid = fork();
    if (pid == 0)
        try_everything(ends[1]);
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &done, sizeof done), sizeof done);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)close(ends[0]);
    /* The kernel has filters: it wants to read the one that is missing. */
    bool filters = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) != 0 && errno == EFAULT;
    /* Without them, it only has to read. */
    uint64_t tried = confine_filters && filters ? UINT64_MAX : 1;
    assert_int_equal(done & tried, 1);
}
