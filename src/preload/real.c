/*
 * Finding the real functions: see real.h. It may be an allocator that calls the first wrapper, in the midst of its first
 * allocation. So nothing is looked for that is not there: the loader would allocate the message that tells so.
 */
#include "preload/real.h"

#include <dlfcn.h>
#include <string.h>

struct real real;

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
#define SYMBOL(name) {#name, offsetof(struct real, name)},
#define CALLED       SYMBOL
#define LIBRARY(name)
#define NEWER(name, since)
#include "preload/symbols.def"
#undef NEWER
#undef LIBRARY
#undef CALLED
#undef SYMBOL
};

/* Those of conditions exist twice on x86-64, the newest one excepted. */
static bool exists_twice(const char *name)
{
#if defined(__x86_64__)
    return strncmp(name, "pthread_cond_", 13) == 0 && strcmp(name, "pthread_cond_clockwait") != 0;
#else
    (void)name;
    return false;
#endif
}

/*
 * The next definition after ours. Of two the older one, for another layout, may be what dlsym finds. What is no version at
 * all is another library's wrapper, a sanitizer's: it is the next one.
 */
static void *find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (exists_twice(name) && found == dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5"))
        return dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return found;
}

void real_find(void)
{
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void **at = (void **)((char *)&real + symbols[i].offset);
        if (!__atomic_load_n(at, __ATOMIC_RELAXED))
            __atomic_store_n(at, find(symbols[i].name), __ATOMIC_RELAXED);
    }
}

bool real_has(void **function, const char *name)
{
    static const char *const files[] = {"liburing.so.2", "liburing.so.1", "libaio.so.1"};
    const size_t count = sizeof files / sizeof files[0];
    void *found;
    if (__atomic_load_n(function, __ATOMIC_RELAXED))
        return true;
    found = dlsym(RTLD_NEXT, name);
    for (size_t i = 0; !found && i < count; i++) {
        void *library = dlopen(files[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!library)
            continue;
        found = dlsym(library, name);
        (void)REAL(dlclose)(library);
    }
    __atomic_store_n(function, found, __ATOMIC_RELAXED);
    return found != NULL;
}
