/*
 * trail watch: exports the traces that appear in a folder, each once. The export of one trace is
 * `trail export --to=parquet`, or a command given by the user; a finished trace is noted in a
 * ledger.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "commands/watch_ledger.h"
#include "ui/cli.h"
#include "ui/folders.h"
#include "ui/values.h"
#include "wire/wire.h"

#define LEDGER    ".trail-watch"
#define SETTLE_NS INT64_C(2000000000)

/* How long one trace may take. */
#define LIMIT_NS INT64_C(600000000000)

/* Time that a process asked to end has for that. */
#define END_MS 1000

/* How long to wait before retrying a file that could not be handled. */
#define RETRY_MS 60000

struct request {
    const char *folder, *output, *host, *run, *endpoint;
    bool once;
    int64_t limit_ns;
    int64_t settle_ns; /* a file that has not changed for this long is complete */
};

static const struct option rows[] = {
    {'o', "output", "DIR", "the folder of the Parquet files, and of the ledger",
     TO_TEXT(struct request, output)},
    {0, "host", "NAME", "the machine on which the traces were made (this one)",
     TO_TEXT(struct request, host)},
    {0, "run", "COMMAND",
     "no export: run this command in a shell for each trace, with its path in $TRAIL_FILE",
     TO_TEXT(struct request, run)},
    {0, "endpoint", "URL",
     "send what threads waited for to a collector as OTLP metrics, too: http://localhost:4318",
     TO_TEXT(struct request, endpoint)},
    {0, "once", NULL, "handle the present files, and end; waits for files that have just changed",
     TO_FLAG(struct request, once)},
    {0, "limit", "TIME", "time limit for one trace, which is then tried again later (10m)",
     TO_TIME(struct request, limit_ns), .least = 1},
    {0, "settle", "TIME",
     "a file found there is complete when unchanged for this time (2s); one closed or moved there "
     "is complete at once",
     TO_TIME(struct request, settle_ns), .most = INT64_C(3600000000000),
     .expects = "a time up to 1h, such as 2s"},
    {0},
};

struct watch {
    const struct request *request;
    struct ledger ledger;
    int folder;  /* its descriptor */
    int signals; /* readable when the command is to end */
    int changes; /* of inotify */
    bool ended;
    bool waits; /* a file has to be examined again */
    bool fresh; /* one of them has just changed: its writer may not have finished */
    bool last;  /* with --once: files still being written are left out */
    bool failed;
    int code;
};

/* MARK: Files */

/* Whether the file begins like a trace, or is compressed: then the export finds out. */
static bool may_be_trace(int fd)
{
    static const char *const packed[] = {"\x1f\x8b", "\x28\xb5\x2f\xfd", "\3757zXZ"};
    uint8_t begin[WIRE_HEADER_SIZE] = {0};
    ssize_t size = pread(fd, begin, sizeof begin, 0);
    for (size_t i = 0; size > 0 && i < sizeof packed / sizeof *packed; i++)
        if (memcmp(begin, packed[i], strlen(packed[i])) == 0)
            return true;
    return size == WIRE_HEADER_SIZE && wire_header_parse(begin) != 0;
}

static bool is_settled(const struct watch *watch, const struct stat *file)
{
    int64_t age = (int64_t)clock_ns(CLOCK_REALTIME) -
                  (file->st_mtim.tv_sec * INT64_C(1000000000) + file->st_mtim.tv_nsec);
    return age < 0 || age >= watch->request->settle_ns;
}

/* MARK: Handling */

static bool is_to_end(const struct watch *watch)
{
    struct pollfd signals = {.fd = watch->signals, .events = POLLIN};
    return watch->ended || poll(&signals, 1, 0) != 0;
}

/* Ends a process and its descendants. */
static void end_process(pid_t pid, struct pollfd *process)
{
    (void)kill(-pid, SIGTERM);
    if (poll(process, 1, END_MS) == 0)
        (void)kill(-pid, SIGKILL);
}

/* Waits for the process, and ends it after the time limit or when a signal asks for the end.
 * Returns its exit code; -1 if it has none. */
static int wait_for(const struct watch *watch, const char *path, pid_t pid)
{
    struct pollfd fds[2] = {{.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN},
                            {.fd = watch->signals, .events = POLLIN}};
    int64_t limit_ms = watch->request->limit_ns / 1000000;
    int ready = fds[0].fd >= 0 ? poll(fds, 2, limit_ms < INT_MAX ? (int)limit_ms : INT_MAX) : 1;
    int status;
    if (fds[0].fd >= 0 && !fds[0].revents) {
        print_message(ready == 0 ? "%s: ended after the time limit (--limit)" : "%s: interrupted",
                      path);
        end_process(pid, &fds[0]);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (fds[0].fd >= 0)
        (void)close(fds[0].fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/*
 * Runs a program for an open file, which trail inherits, whatever the path names by now. Returns
 * its exit code; -1 after a message.
 */
static int run_words(const struct watch *watch, const char *path, int fd, const char *program,
                     const char *const *words)
{
    extern char **environ;
    char opened[16];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t pid;
    (void)sigemptyset(&none);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    (void)posix_spawn_file_actions_init(&files);
    (void)snprintf(opened, sizeof opened, "%d", fd);
    if (!watch->request->run) {
        (void)posix_spawn_file_actions_adddup2(&files, fd, fd);
        (void)setenv(OPENED_VARIABLE, opened, 1);
    }
    (void)setenv("TRAIL_FILE", path, 1);
    int reason =
        posix_spawn(&pid, program, &files, &attributes, (char *const *)(uintptr_t)words, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&files);
    if (reason != 0) {
        print_message("%s: cannot be handled: %s", path, strerror(reason));
        return -1;
    }
    return wait_for(watch, path, pid);
}

/* Whether all that could be read was taken. */
static bool is_taken(int code)
{
    return code == EXIT_GOOD || code == EXIT_BAD;
}

/* Exports an open file, or runs the user's command. Returns the exit code; -1 after a message. */
static int run_one(const struct watch *watch, const char *path, int fd)
{
    static const char self[] = "/proc/self/exe";
    const struct request *request = watch->request;
    const char *words[10] = {"trail", "export", "--to=parquet", "--output", request->output};
    size_t count = 5;
    if (request->run)
        return run_words(watch, path, fd, "/bin/sh",
                         (const char *const[]){"sh", "-c", request->run, NULL});
    if (request->host) {
        words[count++] = "--host";
        words[count++] = request->host;
    }
    words[count++] = "--";
    words[count] = path;
    int code = run_words(watch, path, fd, self, words);
    if (!request->endpoint || !is_taken(code))
        return code;
    int sent = run_words(watch, path, fd, self,
                         (const char *const[]){"trail", "export", "--to=otlp-metrics", "--endpoint",
                                               request->endpoint, "--", path, NULL});
    return is_taken(sent) ? code : sent;
}

/* A damaged trace is done once its good part is. One that could not be read or written is
 * retried. */
static void handle(struct watch *watch, const char *name, const char *path, int fd,
                   const struct stat *file)
{
    const struct request *request = watch->request;
    int code = run_one(watch, path, fd);
    if (request->run ? code == EXIT_GOOD : is_taken(code)) {
        watch->code = worse_exit(watch->code, code);
        if (!ledger_add(&watch->ledger, name, file)) {
            watch->code = print_output_error(request->output, errno);
            watch->ended = true;
        }
    } else {
        print_message("%s: not done (exit code %d); it will be retried", path, code);
        watch->code = worse_exit(watch->code, EXIT_INOUT);
        watch->failed = watch->waits = true;
    }
    if (code == EXIT_GOOD)
        printf("%s\n", path);
    (void)fflush(stdout);
}

/* Whether the name shows that the file will be renamed when it is complete. */
static bool is_temporary(const char *name)
{
    static const char *const ends[] = {".tmp", ".part", "~"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (text_ends(text_from(name), ends[i]))
            return true;
    return *name == '.';
}

static void look_at_open(struct watch *watch, const char *name, const char *path, int fd,
                         const struct stat *file, bool complete)
{
    if (ledger_has(&watch->ledger, name, file))
        return;
    if (!complete && !is_settled(watch, file)) {
        watch->fresh = watch->waits = true;
        if (watch->last) {
            print_message("%s: it is still being written; not done", path);
            watch->code = worse_exit(watch->code, EXIT_INOUT);
        }
        return;
    }
    if (may_be_trace(fd)) {
        handle(watch, name, path, fd, file);
        return;
    }
    print_message("%s: not a trace; left alone", path);
    (void)ledger_add(&watch->ledger, name, file);
}

/* Examines a file; `complete`: its writer has closed it. */
static void look_at(struct watch *watch, const char *name, bool complete)
{
    struct stat file;
    char *path = NULL;
    int fd;
    if (is_temporary(name) || asprintf(&path, "%s/%s", watch->request->folder, name) < 0)
        return;
    fd = regular_file_open(path, NULL, &file);
    if (fd >= 0) {
        look_at_open(watch, name, path, fd, &file, complete);
        (void)close(fd);
    } else if (errno == EAGAIN) { /* another process has a lease of it */
        watch->failed = watch->waits = true;
    }
    free(path);
}

/* In order of name, which usually contains a number or time. */
static void look_at_all(struct watch *watch)
{
    struct dirent **entries = NULL;
    int count = scandir(watch->request->folder, &entries, NULL, alphasort);
    watch->waits = watch->fresh = false;
    if (count < 0) {
        print_message("%s: %s", watch->request->folder, strerror(errno));
        watch->code = EXIT_INOUT;
        watch->ended = true;
    }
    for (int i = 0; i < count; i++) {
        if (!is_to_end(watch))
            look_at(watch, entries[i]->d_name, false);
        free(entries[i]);
    }
    free((void *)entries);
}

/* MARK: Waiting */

static void take_changes(struct watch *watch)
{
    union {
        struct inotify_event event;
        char bytes[16384];
    } buffer;
    ssize_t size = read(watch->changes, &buffer, sizeof buffer);
    for (ssize_t at = 0; at < size && !is_to_end(watch);) {
        const struct inotify_event *event = (const void *)(buffer.bytes + at);
        at += (ssize_t)(sizeof *event + event->len);
        if (event->mask & IN_Q_OVERFLOW)
            look_at_all(watch);
        else if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT))
            watch->ended = true;
        else if (event->len > 0)
            look_at(watch, event->name, true);
    }
}

/* Handles what is there, once: files that have just changed get time to be completed. */
static void watch_once(struct watch *watch)
{
    struct pollfd signals = {.fd = watch->signals, .events = POLLIN};
    look_at_all(watch);
    bool ended = is_to_end(watch);
    if (!ended && !watch->fresh)
        return;
    if (ended || poll(&signals, 1, (int)(watch->request->settle_ns / 1000000) + 1) != 0) {
        print_message("%s: ended before all files were complete; the others are not done",
                      watch->request->folder);
        watch->code = worse_exit(watch->code, EXIT_INOUT);
        return;
    }
    watch->last = true;
    look_at_all(watch);
}

/* Runs until a signal comes. */
static void watch_changes(struct watch *watch)
{
    while (!is_to_end(watch)) {
        struct pollfd fds[2] = {{.fd = watch->changes, .events = POLLIN},
                                {.fd = watch->signals, .events = POLLIN}};
        int settle_ms = (int)(watch->request->settle_ns / 1000000) + 1;
        int pause = watch->failed ? RETRY_MS : settle_ms;
        int ready = poll(fds, 2, watch->waits ? pause : -1);
        if (ready == 0)
            look_at_all(watch);
        else if (ready > 0 && fds[0].revents)
            take_changes(watch);
    }
}

static bool open_signals(struct watch *watch)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    watch->signals = signalfd(-1, &set, SFD_CLOEXEC);
    return watch->signals >= 0;
}

static int begin(struct watch *watch)
{
    const struct request *request = watch->request;
    struct folders folders = {0};
    char *path = NULL;
    watch->folder = open(request->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    watch->changes = inotify_init1(IN_CLOEXEC);
    /* Watches first, then lists what is there, so that nothing in between is missed. */
    if (watch->folder < 0 || watch->changes < 0 || !open_signals(watch) ||
        inotify_add_watch(watch->changes, request->folder,
                          IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF) < 0) {
        print_message("%s: %s", request->folder, strerror(errno));
        return EXIT_INOUT;
    }
    int code = folders_make(&folders, request->output);
    folders_end(&folders, true);
    if (code == EXIT_GOOD && asprintf(&path, "%s/" LEDGER, request->output) < 0)
        code = EXIT_INOUT;
    if (code == EXIT_GOOD)
        code = ledger_open(&watch->ledger, path);
    free(path);
    return code;
}

static int watch_folder(const struct request *request)
{
    struct watch watch = {
        .request = request, .ledger = {.fd = -1}, .folder = -1, .signals = -1, .changes = -1};
    watch.code = begin(&watch);
    if (watch.code == EXIT_GOOD) {
        if (request->once) {
            watch_once(&watch);
        } else {
            look_at_all(&watch);
            watch_changes(&watch);
        }
    }
    ledger_close(&watch.ledger);
    for (int i = 0; i < 3; i++) {
        int fd = (const int[]){watch.folder, watch.signals, watch.changes}[i];
        if (fd >= 0)
            (void)close(fd);
    }
    return watch.code;
}

/* MARK: The command line */

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.limit_ns = LIMIT_NS, .settle_ns = SETTLE_NS};
    struct options options;
    int code = options_each(&options, command, argc, argv, NULL, &request);
    if (code != EXIT_GOOD)
        return code;
    if (options.word_count != 1)
        return usage_error(command, "no folder given: trail watch DIR -o DIR");
    if (request.run && request.endpoint)
        return usage_error(command, "--run or --endpoint, not both");
    if (!request.output)
        return usage_error(command, "no output given: --output=DIR");
    request.folder = options.words[0];
    return watch_folder(&request);
}

const struct command command_watch = {
    COMMAND_ROW(watch),
    .synopsis = "[options] DIR -o DIR",
    .details = "Exports each trace that is in the folder or appears in it to Parquet files, once, "
               "as trail export does. A file in the output folder lists the traces that are done. "
               "Names that begin with a dot or end in .tmp, .part or ~ are ignored. A signal ends "
               "it. The exit status is 1 if a trace was damaged, of which the good part was "
               "exported, and 3 if one could not be exported.",
    .examples = "  trail watch /var/traces --host=web1 -o /srv/traces\n"
                "  trail watch --once /var/traces -o /srv/traces\n"
                "  trail watch /var/traces -o /srv/done --run='cp \"$TRAIL_FILE\" /backup'",
    .no_input = true,
};
