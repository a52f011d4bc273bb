/*
 * Programs with OpenMP for bench/whatif: each as it is, and with a change that trail whatif can predict.
 */
#include "whatif.h"

enum { ROUNDS = 60, THREADS = 2 };

static long total;

/* --hold='critical 0x...=0.5x': of a named critical section, the only one */
static void critical_halved(void)
{
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (int i = 0; i < ROUNDS; i++) {
        burn(1000);
#pragma omp critical(totals)
        {
            burn(changed ? 2000 : 4000);
            total++;
        }
    }
}

/* --free: the section becomes a reduction */
static void critical_removed(void)
{
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (int i = 0; i < ROUNDS; i++) {
        burn(2000);
        if (changed)
            burn(3000);
        else {
#pragma omp critical(totals)
            burn(3000);
        }
    }
}

static __attribute__((noinline)) void heavy(int is_faster)
{
    burn(is_faster ? 3000 : 6000);
}

static __attribute__((noinline)) void light(int is_faster)
{
    burn(is_faster ? 2000 : 4000);
}

static void loops(int heavy_is_faster, int light_is_faster)
{
    for (int loop = 0; loop < 3; loop++) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
        for (int i = 0; i < ROUNDS / 2; i++)
            if (i < ROUNDS / 4)
                heavy(heavy_is_faster);
            else
                light(light_is_faster);
    }
}

/* --faster=heavy=2x: then the other thread's half is the longer one */
static void imbalance(void)
{
    loops(changed, 0);
}

/* --faster=light=2x: it waits all the longer */
static void light_half(void)
{
    loops(0, changed);
}

static const struct pair pairs[] = {
    {"critical-halved", critical_halved},
    {"critical-removed", critical_removed},
    {"imbalance", imbalance},
    {"light-half", light_half},
};

int main(int argc, char **argv)
{
    return RUN_PAIR(pairs, argc, argv);
}
