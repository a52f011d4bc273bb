/*
 * Two pipelines: the sieve of Eratosthenes as a chain of channels with a coroutine for each prime,
 * and workers that count words, objects of the heap, under a mutex.
 */
#include "scheduler.h"

#include <stdlib.h>

/* MARK: Sieve */

struct stage {
    struct channel *in, *out;
    uintptr_t prime;
};

static void generate(void *argument)
{
    struct stage *s = argument;
    for (uintptr_t i = 2; i < s->prime; i++)
        chan_send(s->out, i);
    chan_close(s->out);
    free(s);
}

/* Passes on numbers that its prime does not divide. The next stage frees its channel. */
static void filter(void *argument)
{
    struct stage *s = argument;
    uintptr_t n;
    while (chan_receive(s->in, &n)) {
        safe_point();
        if (n % s->prime != 0)
            chan_send(s->out, n);
    }
    chan_close(s->out);
    chan_free(s->in);
    free(s);
}

static struct channel *add_stage(void (*function)(void *), struct channel *in, uintptr_t prime)
{
    struct stage *s = calloc(1, sizeof(*s));
    struct channel *out = chan_new((unsigned)(prime % 3)); /* some have no buffer */
    if (!s)
        abort();
    *s = (struct stage){in, out, prime};
    go(function, s);
    return out;
}

unsigned sieve(unsigned below)
{
    struct channel *c = add_stage(generate, NULL, below);
    unsigned primes = 0;
    uintptr_t prime;
    for (; chan_receive(c, &prime); primes++)
        c = add_stage(filter, c, prime);
    chan_free(c);
    return primes;
}

/* MARK: Words */

enum { DISTINCT = 50 };

struct count {
    struct channel *words;
    struct mutex mutex;
    struct cond full; /* all words counted */
    unsigned counted, expected;
    unsigned of[DISTINCT];
    struct group running;
};

static void count_some(void *argument)
{
    struct count *c = argument;
    struct object *seen = NULL;
    uintptr_t word;
    heap_root_add(&seen);
    for (unsigned n = 1; chan_receive(c->words, &word); n++) {
        heap_new(&seen, word);
        mutex_lock(&c->mutex);
        c->of[word]++;
        if (++c->counted == c->expected)
            cond_broadcast(&c->full);
        mutex_unlock(&c->mutex);
        if (n % 40 == 0)
            heap_drop(&seen);
        safe_point();
    }
    heap_root_remove(&seen);
    group_done(&c->running);
}

unsigned count_words(unsigned workers, unsigned words)
{
    struct count c = {.words = chan_new(4), .expected = words};
    uint64_t random = sched.seed;
    unsigned sum = 0;
    group_add(&c.running, workers);
    for (unsigned i = 0; i < workers; i++)
        go(count_some, &c);
    for (unsigned i = 0; i < words; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        chan_send(c.words, (random >> 33) % DISTINCT);
    }
    mutex_lock(&c.mutex);
    while (c.counted < words)
        cond_wait(&c.full, &c.mutex);
    mutex_unlock(&c.mutex);
    chan_close(c.words);
    group_wait(&c.running);
    chan_free(c.words);
    for (unsigned i = 0; i < DISTINCT; i++)
        sum += c.of[i];
    return sum;
}
