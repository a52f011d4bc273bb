/*
 * Code generated at run time, listed in a perf map as JIT compilers do: two generated functions
 * around a wait. Prints the path of the map, which is not removed. With a third argument the
 * program waits until stdin ends; if that is "none", no map is written.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};

typedef void (*calls)(void (*)(void));

static calls inner, outer;
static bool stays;

__attribute__((noinline)) static void pause_it(void)
{
    char byte;
    if (stays)
        (void)!read(STDIN_FILENO, &byte, 1);
    else
        usleep(20000);
    __asm__ volatile("");
}

__attribute__((noinline)) static void between(void)
{
    inner(pause_it);
    __asm__ volatile("");
}

static calls generate(void)
{
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    memcpy(memory, code, sizeof code);
    if (mprotect(memory, 4096, PROT_READ | PROT_EXEC) != 0)
        exit(77);
    return (calls)(uintptr_t)memory;
}

static void list(FILE *file, const char *name, calls function)
{
    fprintf(file, "%lx %zx %s\n", (unsigned long)(uintptr_t)function, sizeof code, name);
}

static void write_list(FILE *file, char **names)
{
    /* A line overridden by a later one, and invalid lines. */
    list(file, "replaced", outer);
    fputs("\nx y z\n10\n10 0 empty\nffffffffffffffff 10 wraps\n", file);
    list(file, names[0], inner);
    list(file, names[1], outer);
}

int main(int argc, char **argv)
{
    char path[64];
    if (argc < 3)
        return 2;
    stays = argc > 3;
    inner = generate();
    outer = generate();
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    if (!stays || strcmp(argv[3], "none") != 0) {
        FILE *file = fopen(path, "wx");
        if (!file)
            return 77;
        write_list(file, argv + 1);
        fclose(file);
    }
    puts(path);
    fflush(stdout);
    for (int i = 0; i < (stays ? 1 : 3); i++)
        outer(between);
    return 0;
}
