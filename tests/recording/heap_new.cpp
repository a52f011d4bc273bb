/* A heap with a known answer, with C++'s new and delete: like heap.c. */
#include <cstdio>
#include <cstdlib>
#include <new>

static const long MB = 1024L * 1024;
static long live, blocks;

/* Keeps the compiler from removing unused memory. */
static void *volatile kept;

template <class Memory> static Memory *keep(Memory *memory)
{
    kept = memory;
    return static_cast<Memory *>(kept);
}

static void step(long bytes, long count)
{
    live += bytes;
    blocks += count;
    printf("%ld %ld\n", live, blocks);
}

struct alignas(256) Aligned {
    char bytes[3 * MB];
};

struct Throws {
    char bytes[2 * MB];
    Throws() : bytes()
    {
        throw 1;
    }
};

/* Running out of memory throws an exception, which passes through the recorder. */
static void fails()
{
    volatile size_t much = (size_t)1 << 62;

    try {
        delete[] keep(new char[much]);
        abort();
    } catch (const std::bad_alloc &) {
    }
    if (keep(new (std::nothrow) char[much]))
        abort();
    try {
        delete new Throws;
        abort();
    } catch (int) {
    }
}

int main()
{
    char *arrays[4];

    for (char *&array : arrays) {
        array = keep(new char[10 * MB]);
        step(10 * MB, 1);
    }
    fails();
    Aligned *aligned = keep(new Aligned), *many = keep(new Aligned[2]);
    step(9 * MB, 2);
    long *one = keep(new (std::nothrow) long[MB]);
    step(8 * MB, 1);
    delete[] one;
    step(-8 * MB, -1);
    delete aligned;
    delete[] many;
    step(-9 * MB, -2);
    for (char *array : arrays) {
        delete[] array;
        step(-10 * MB, -1);
    }
    return 0;
}
