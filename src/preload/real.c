/*
 * Finds the real functions: see real.h. The first wrapper may be called by an allocator during its
 * first allocation, so only existing functions are looked up: for others the loader would allocate
 * an error message.
 */
#include "preload/real.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

struct real real;

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
#define SYMBOL(name) {#name, offsetof(struct real, name)},
#define LIBRARY(name)
#define NEWER(name, since)
#include "preload/symbols.def"
};

/* Functions of condition variables exist in two versions on x86-64, except the newest one. */
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
 * The loader lists the libraries of LD_PRELOAD before those that the program needs, such as the C
 * library. That part of its list never changes. dl_iterate_phdr could be a sanitizer's, which may
 * not be ready yet.
 */
bool real_is_late(void)
{
    static int8_t known; /* 0: not yet; 1: it is; 2: it is not */
    for (const struct link_map *map = _r_debug.r_map; !known && map; map = map->l_next) {
        const char *slash = strrchr(map->l_name, '/');
        if (map->l_ld == _DYNAMIC)
            known = 2;
        else if (slash && strncmp(slash, "/libc.so", 8) == 0)
            known = 1;
    }
    return known == 1;
}

/*
 * Returns the next definition after ours. Of two versions dlsym may find the older one, whose
 * layout differs. A definition that is neither version is the wrapper of another library, such as a
 * sanitizer.
 */
static void *find(const char *name)
{
    void *scope = real_is_late() ? RTLD_DEFAULT : RTLD_NEXT;
    void *found = dlsym(scope, name);
    if (exists_twice(name) && found == dlvsym(scope, name, "GLIBC_2.2.5"))
        found = dlvsym(scope, name, "GLIBC_2.3.2");
    /* If only this library defines it, its own wrapper is found. */
    return real_is_late() && found == real_wrapper(name) ? NULL : found;
}

/* The search continues in the libraries that this one needs, hence the check of the base. */
void *real_wrapper(const char *name)
{
    static void *own, *base;
    Dl_info info;
    if (!own && dladdr(&real, &info)) {
        base = info.dli_fbase;
        own = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    }
    void *found = own ? dlsym(own, name) : NULL;
    return found && dladdr(found, &info) && info.dli_fbase == base ? found : NULL;
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
    if (__atomic_load_n(function, __ATOMIC_RELAXED))
        return true;
    void *found = find(name);
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

void real_read_text(const char *path, char *text, size_t size)
{
    int fd = REAL(open)(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? REAL(read)(fd, text, size - 1) : -1;
    if (fd >= 0)
        (void)REAL(close)(fd);
    text[got > 0 ? got : 0] = '\0';
}
