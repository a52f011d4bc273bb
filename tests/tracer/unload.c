/*
 * A program that loads libtrail-record, or a plugin that contains it, and unloads it again: with a trace
 * on, stopped, or with the flight recorder, while a thread that has annotated is alive. Its end, a fork
 * and exit() afterwards must not call code that is gone.
 *
 *     unload LIBRARY...        each is a shared library with the functions of record.h
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <trail/record.h>
#include <unistd.h>

/* The state of the trace when the library is unloaded. */
enum when { ON, STOPPED, FLIGHT, WHENS };
static const char *const when_names[WHENS] = {"while a trace is on", "after a stop",
                                              "while the flight recorder is on"};

/* The functions of the library that are called. */
static struct {
    bool (*start)(const trail_options *options, int fd, trail_error *err);
    bool (*stop)(trail_error *err);
    bool (*flight)(const trail_flight_options *options, trail_error *err);
    void (*log)(uint64_t task, const char *category, const char *message);
} calls;

static sem_t annotated, may_end;

static void *annotate(void *arg)
{
    calls.log(0, "unload", "text");
    sem_post(&annotated);
    sem_wait(&may_end);
    return arg;
}

static bool has_forked;

/* At exit, LeakSanitizer would look for the parent's threads, and wait for locks that they held at
 * the fork. */
/* NOLINTBEGIN(bugprone-reserved-identifier): LeakSanitizer's name for it */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return has_forked;
}
/* NOLINTEND(bugprone-reserved-identifier) */

static bool find(void *library)
{
    *(void **)&calls.start = dlsym(library, "trail_start_fd");
    *(void **)&calls.stop = dlsym(library, "trail_stop");
    *(void **)&calls.flight = dlsym(library, "trail_flight_start");
    *(void **)&calls.log = dlsym(library, "trail_log_");
    return calls.start && calls.stop && calls.flight && calls.log;
}

static int use(const char *path, enum when when)
{
    trail_options options = {.generation_ns = 1000000};
    trail_flight_options flight = {.trace = options};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    pthread_t thread;
    pid_t child;
    int status = 0;
    if (!library || !find(library)) {
        printf("# %s\n", dlerror());
        return 1;
    }
    sem_init(&annotated, 0, 0);
    sem_init(&may_end, 0, 0);
    if (when == FLIGHT ? !calls.flight(&flight, NULL)
                       : !calls.start(&options, memfd_create("trace", 0), NULL))
        return 2;
    if (pthread_create(&thread, NULL, annotate, NULL) != 0)
        return 3;
    sem_wait(&annotated);
    if (when == STOPPED && !calls.stop(NULL))
        return 4;
    dlclose(library);
    /* The library's thread ends generations meanwhile. */
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    sem_post(&may_end);
    pthread_join(thread, NULL);
    child = fork();
    if (child == 0) {
        has_forked = true;
        exit(0);
    }
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : 5;
}

int main(int argc, char **argv)
{
    int number = 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("1..%d\n", (argc - 1) * WHENS);
    for (int i = 1; i < argc; i++)
        for (int when = 0; when < WHENS; when++) {
            pid_t child = fork();
            int status = -1;
            if (child == 0) {
                alarm(60);
                exit(use(argv[i], (enum when)when));
            }
            waitpid(child, &status, 0);
            printf("%s %d - unloading %s %s\n", status == 0 ? "ok" : "not ok", ++number, argv[i],
                   when_names[when]);
            if (status != 0)
                printf("# it ended with %#x\n", (unsigned)status);
        }
    return 0;
}
