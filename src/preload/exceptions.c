/*
 * The unwinder's functions that the clean-up of wrappers needs when an exception or a cancellation
 * passes through them. Linking them would load libgcc_s into each program, which few short ones
 * need: a shell script's time is spent in the starts of its processes. While something is thrown,
 * an unwinder is loaded already.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

/* NOLINTBEGIN(bugprone-reserved-identifier): the compiler calls them by these names. <unwind.h>
 * would export them. */
void _Unwind_Resume(void *exception);
int __gcc_personality_v0(int version, int actions, uint64_t class, void *exception, void *context);

/* The program's unwinder first: a context must not go from one unwinder to another. */
static void *unwinder(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    void *library = found ? NULL : dlopen("libgcc_s.so.1", RTLD_LAZY);
    if (library)
        found = dlsym(library, name);
    if (!found)
        abort(); /* as the C library does where it cannot unwind */
    return found;
}

void _Unwind_Resume(void *exception)
{
    ((__typeof__(&_Unwind_Resume))(uintptr_t)unwinder("_Unwind_Resume"))(exception);
}

int __gcc_personality_v0(int version, int actions, uint64_t class, void *exception, void *context)
{
    __typeof__(&__gcc_personality_v0) personality =
        (__typeof__(personality))(uintptr_t)unwinder("__gcc_personality_v0");
    return personality(version, actions, class, exception, context);
}
/* NOLINTEND(bugprone-reserved-identifier) */
