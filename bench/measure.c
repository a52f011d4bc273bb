/*
 * trail-measure: runs a program and writes what it took as one line to a file:
 *
 *     WALL_NS USER_NS SYSTEM_NS PEAK_RSS_BYTES EXIT_STATUS
 *
 * A script cannot do it itself: the peak memory of a child begins with that of the process that
 * forked it, and an interpreter is larger than what is measured here.
 *
 * usage: trail-measure OUTPUT PROGRAM ARGUMENT...
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long timeval_ns(struct timeval t)
{
    return t.tv_sec * 1000000000LL + t.tv_usec * 1000LL;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: trail-measure OUTPUT PROGRAM ARGUMENT...\n", stderr);
        return 2;
    }
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) < 0) {
        perror("trail-measure");
        return 3;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    long long wall = (end.tv_sec - begin.tv_sec) * 1000000000LL + (end.tv_nsec - begin.tv_nsec);
    FILE *output = fopen(argv[1], "w");
    if (!output) {
        perror(argv[1]);
        return 3;
    }
    fprintf(output, "%lld %lld %lld %lld %d\n", wall, timeval_ns(usage.ru_utime),
            timeval_ns(usage.ru_stime), usage.ru_maxrss * 1024LL,
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return fclose(output) == 0 ? 0 : 3;
}
