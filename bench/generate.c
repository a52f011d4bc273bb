/*
 * trail-generate: writes a valid Go execution trace of any size and version from a seed. For
 * benchmarks and tests; see generate/generate.h for how it works.
 */
#include "generate/generate.h"
#include "wire/wire.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: trail-generate [options] -o FILE\n"
    "Writes a valid Go execution trace, made up from a seed. FILE may be - for standard output.\n"
    "\n"
    "  --format=1.N       format of the trace: 1.5 ... 1.21, 1.22 ... 1.26 (default 1.26)\n"
    "  --size=N[K|M|G]    stop at about this size\n"
    "  --events=N[K|M|G]  stop after this many events (default 100K)\n"
    "  --seed=N           equal seeds give equal files (default 1)\n"
    "  --procs=N          Ps, 1 to 1024 (default 4)\n"
    "  --goroutines=N     about this many at a time, at least 16 (default 1000)\n"
    "  --stacks=N         about this many different ones (default 4000)\n"
    "  --rate=N           events a second of trace time (default: v2 2M, v1 6M)\n"
    "  -o, --output=FILE\n"
    "\n"
    "example: trail-generate --format=1.21 --size=20M -o load.trace\n";

/* Parses a number with an optional K, M or G (of 1000). False if it is none, or 0 or too large. */
static bool parse_number(const char *text, uint64_t max, uint64_t *number)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    static const char suffixes[] = "KMG";
    uint64_t factor = 1;
    if (*end) {
        const char *suffix = strchr(suffixes, *end++);
        if (!suffix)
            return false;
        for (const char *s = suffixes; s <= suffix; s++)
            factor *= 1000;
    }
    *number = value * factor;
    return end != text && *end == '\0' && value != 0 && value <= max / factor;
}

static bool parse_version(const char *text, int *version)
{
    if (strncmp(text, "1.", 2) != 0)
        return false;
    *version = atoi(text + 2);
    for (const struct wire_version *v = wire_versions; v->minor; v++)
        if (v->minor == *version)
            return true;
    return false;
}

static bool parse_option(struct options *options, int option, const char *text)
{
    uint64_t number = 0;
    bool ok;
    switch (option) {
    case 'f':
        return parse_version(text, &options->version);
    case 's':
        return parse_number(text, UINT64_MAX, &options->size);
    case 'e':
        return parse_number(text, UINT64_MAX, &options->events);
    case 'S':
        return parse_number(text, UINT64_MAX, &options->seed);
    case 'r':
        return parse_number(text, 1000000000, &options->rate);
    case 'p':
        ok = parse_number(text, 1024, &number);
        options->procs = (unsigned)number;
        return ok;
    case 'g':
        ok = parse_number(text, 10000000, &number);
        options->goroutines = (unsigned)number;
        return ok && number >= 16;
    case 'k':
        ok = parse_number(text, 10000000, &number);
        options->stacks = (unsigned)number;
        return ok;
    default:
        return false;
    }
}

static const struct option long_options[] = {
    {"format", required_argument, NULL, 'f'},
    {"size", required_argument, NULL, 's'},
    {"events", required_argument, NULL, 'e'},
    {"seed", required_argument, NULL, 'S'},
    {"procs", required_argument, NULL, 'p'},
    {"rate", required_argument, NULL, 'r'},
    {"goroutines", required_argument, NULL, 'g'},
    {"stacks", required_argument, NULL, 'k'},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

int main(int argc, char **argv)
{
    static struct sim sim;
    sim.options =
        (struct options){.version = 26, .seed = 1, .procs = 4, .goroutines = 1000, .stacks = 4000};
    const char *path = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "o:h", long_options, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return 0;
        }
        if (option == 'o') {
            path = optarg;
        } else if (!parse_option(&sim.options, option, optarg)) {
            fputs(usage, stderr);
            return 2;
        }
    }
    if (!path || optind != argc) {
        fputs(usage, stderr);
        return 2;
    }
    if (!sim.options.size && !sim.options.events)
        sim.options.events = 100000;
    sim.file = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
    if (!sim.file) {
        perror(path);
        return 3;
    }
    sim_run(&sim);
    if (fclose(sim.file) != 0 || sim.failed) {
        perror(path);
        return 3;
    }
    fprintf(stderr, "%s: go 1.%d, %llu bytes, %llu events\n", path, sim.options.version,
            (unsigned long long)sim.written, (unsigned long long)sim.events);
    return 0;
}
