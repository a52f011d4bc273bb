/* Joins and leaves a recording while the program runs: see shm/attach.h. */
#include "shm/attach.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "preload/connections.h"
#include "preload/descriptors.h"
#include "preload/imports.h"
#include "preload/known.h"

/* MARK: With the loader's lock */

/* Volatile, because the compiler sees no call of in_loader. */
static uint32_t (*volatile wanted)(void);
static volatile uint32_t changed;

static void nothing(void)
{
}

/*
 * dlsym holds the loader's lock while it resolves an indirect function (gnu_indirect_function), so
 * no thread can load or unload a library in the meantime.
 */
__attribute__((used)) static void (*in_loader(void))(void)
{
    uint32_t (*function)(void) = wanted;
    if (function)
        changed = function();
    return nothing;
}

EXPORT void trail_preload_in_loader(void) __attribute__((ifunc("in_loader")));

static uint32_t do_in_loader(uint32_t (*function)(void))
{
    static void *own;
    Dl_info info;
    if (!own && dladdr((void *)trail_preload_join, &info))
        own = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!own)
        return 0;
    wanted = function;
    changed = 0;
    (void)dlsym(own, ATTACH_LOADER);
    wanted = NULL;
    return changed;
}

/* MARK: Calls from outside */

static void answer_with(struct attach_answer *answer, enum attach_result result, uint32_t imports)
{
    answer->imports = imports;
    __atomic_store_n(&answer->result, result, __ATOMIC_RELEASE);
}

/* What an earlier recording learned may have changed unnoticed. */
static void forget_all(void)
{
    descriptors_forget();
    connections_forget();
    known = (struct known){0};
    unwind_forget();
}

/* The current recording's process; pid 0: unknown. Its PID may be reused once it has ended. */
static struct {
    int pid;
    unsigned long long started; /* ticks since boot; 0: unknown */
} recorder;

/* Returns when a process started, and sets its state as in proc(5); 0: it cannot be read. */
static unsigned long long start_of(int pid, char *state)
{
    char path[32], text[1024];
    unsigned long long started = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    real_read_text(path, text, sizeof text);
    /* "12 (a name) S 1 ...": the 3rd and the 22nd field. */
    const char *at = strrchr(text, ')');
    if (!at || sscanf(at,
                      ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                      "%*d %llu",
                      state, &started) != 2)
        return 0;
    return started;
}

/* A zombie has ended, too: the process that killed it may not have waited for it. */
static bool recorder_has_ended(void)
{
    char state = 0;
    if (kill(recorder.pid, 0) != 0 && errno == ESRCH)
        return true;
    unsigned long long started = start_of(recorder.pid, &state);
    return recorder.started != 0 && started != 0 &&
           (started != recorder.started || state == 'Z' || state == 'X');
}

/* Leaves the recording of a recorder that was killed before it could end it. */
static void leave_orphaned(void)
{
    if (!preload.recording || recorder.pid == 0 || !recorder_has_ended())
        return;
    (void)do_in_loader(imports_unwrap);
    preload_detach();
}

static bool begin_recording(const char *word)
{
    char state;
    forget_all();
    if (!preload_attach(word))
        return false;
    recorder.pid = strncmp(word, "pid:", 4) == 0 ? atoi(word + 4) : 0;
    recorder.started = recorder.pid ? start_of(recorder.pid, &state) : 0;
    return true;
}

EXPORT void trail_preload_join(struct attach_answer *answer, const char *word)
{
    enum attach_result result = ATTACH_GOOD;
    uint32_t imports = 0;
    int old_errno = errno;
    leave_orphaned();
    real_find();
    if (!real_is_late())
        result = ATTACH_PRELOADED;
    else if (!real.syscall || !imports_prepare())
        result = ATTACH_NO_FUNCTION;
    else if (preload.recording)
        result = ATTACH_RECORDED;
    else if (!begin_recording(word))
        result = ATTACH_NO_AREA;
    if (result == ATTACH_GOOD) {
        imports = do_in_loader(imports_wrap);
        preload_survive_forks();
    }
    errno = old_errno;
    answer_with(answer, result, imports);
}

EXPORT void trail_preload_renew(struct attach_answer *answer)
{
    uint32_t imports = 0;
    if (preload.recording) {
        real_find();
        imports = do_in_loader(imports_wrap);
        modules_changed();
    }
    answer_with(answer, ATTACH_GOOD, imports);
}

/* The start of this library's first segment, defined by the linker. */
extern const ElfW(Ehdr) own_header __asm__("__ehdr_start") __attribute__((visibility("hidden")));

/*
 * Drops the pages of the library that are never written. Code that is still needed, this function
 * and the ends of calls in progress, is read from the file again.
 */
static void give_back_file(void)
{
    uintptr_t base = (uintptr_t)&own_header, page = getauxval(AT_PAGESZ);
    const ElfW(Phdr) *header = (const ElfW(Phdr) *)(base + own_header.e_phoff);
    for (size_t i = 0; i < own_header.e_phnum; i++, header++) {
        uintptr_t low = (base + header->p_vaddr) & -page;
        uintptr_t high = (base + header->p_vaddr + header->p_memsz + page - 1) & -page;
        if (header->p_type == PT_LOAD && !(header->p_flags & PF_W))
            (void)madvise((void *)low, high - low, MADV_DONTNEED);
    }
}

/* Frees what it can: the program may run for years before it is recorded again. */
static void give_back_memory(void)
{
    int old_errno = errno;
    unwind_forget();
    give_back_file();
    errno = old_errno;
}

EXPORT void trail_preload_leave(struct attach_answer *answer)
{
    uint32_t imports = do_in_loader(imports_unwrap);
    preload_detach();
    give_back_memory();
    answer_with(answer, ATTACH_GOOD, imports);
}
