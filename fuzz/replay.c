/*
 * Runs a fuzz target on the files given as arguments. With -m N before them it also runs N
 * mutations of each file, always the same: bytes changed, removed or doubled, or the end cut off.
 * Prints each file before it runs it, so that the last one is the one that failed; with -k FILE,
 * that file has the input.
 */
#include "fuzz.h"

static uint64_t random_state = 1;

static size_t random_below(size_t limit)
{
    random_state = random_state * 6364136223846793005 + 1442695040888963407;
    return limit ? (size_t)(random_state >> 33) % limit : 0;
}

/* Mutates data of `size` bytes in place. Returns the new size, which is not larger. */
static size_t mutate(uint8_t *data, size_t size)
{
    static const uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xff, 0xc3, 0xf0, 0x25};
    for (size_t changes = 1 + random_below(4); changes > 0 && size > 0; changes--) {
        size_t at = random_below(random_below(2) ? size : (size < 400 ? size : 400));
        size_t n = random_below(size - at < 16 ? size - at : 16);
        switch (random_below(5)) {
        case 0:
            data[at] ^= (uint8_t)(1u << random_below(8));
            break;
        case 1:
            data[at] = telling[random_below(sizeof telling)];
            break;
        case 2:
            memmove(data + at, data + at + n, size - at - n);
            size -= n;
            break;
        case 3:
            memmove(data + at + n, data + at, size - at - n);
            break;
        default:
            size = random_below(8) ? size : at;
            break;
        }
    }
    return size;
}

static const char *kept; /* the file of -k */

static void keep(const uint8_t *data, size_t size)
{
    FILE *file = kept ? fopen(kept, "wb") : NULL;
    if (!file)
        return;
    (void)fwrite(data, 1, size, file);
    (void)fclose(file);
}

/* The input gets a block of exactly its size, so that reads past its end are detected. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    if (size > 0)
        memcpy(copy, data, size);
    keep(copy, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static bool read_file(const char *path, struct fuzz_bytes *bytes)
{
    char part[65536];
    size_t n;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    while ((n = fread(part, 1, sizeof part, file)) > 0)
        (void)fuzz_keep(bytes, part, n);
    return fclose(file) == 0;
}

static void run_mutated(const struct fuzz_bytes *bytes, long mutations)
{
    uint8_t *copy = malloc(bytes->size ? bytes->size : 1);
    for (; copy && mutations > 0; mutations--) {
        if (bytes->size > 0)
            memcpy(copy, bytes->data, bytes->size);
        run(copy, mutate(copy, bytes->size));
    }
    free(copy);
}

int main(int argc, char **argv)
{
    long mutations = 0;
    int first = 1;
    for (; first + 1 < argc && argv[first][0] == '-'; first += 2) {
        if (strcmp(argv[first], "-m") == 0)
            mutations = strtol(argv[first + 1], NULL, 10);
        else
            kept = argv[first + 1];
    }
    for (int i = first; i < argc; i++) {
        struct fuzz_bytes bytes = {0};
        if (!read_file(argv[i], &bytes)) {
            perror(argv[i]);
            free(bytes.data);
            return 1;
        }
        (void)printf("%s\n", argv[i]);
        (void)fflush(stdout);
        random_state = 1;
        run(bytes.data, bytes.size);
        run_mutated(&bytes, mutations);
        free(bytes.data);
    }
    (void)printf("%d files, %ld mutations each\n", argc - first, mutations);
    return 0;
}
