/* Replaces texts by stand-ins derived from a secret: see anonymize.h. */
#include "write/anonymize.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/text.h"

/* MARK: What is of a library */

/* First elements of the import paths of Go's standard library; other modules must not have them. */
static const char *const go_packages[] = {
    "archive", "bufio",    "builtin", "bytes",   "cmp",      "compress", "container", "context",
    "crypto",  "database", "debug",   "embed",   "encoding", "errors",   "expvar",    "flag",
    "fmt",     "go",       "hash",    "html",    "image",    "index",    "io",        "internal",
    "iter",    "log",      "maps",    "math",    "mime",     "net",      "os",        "path",
    "plugin",  "reflect",  "regexp",  "runtime", "slices",   "sort",     "strconv",   "strings",
    "structs", "sync",     "syscall", "testing", "text",     "time",     "unicode",   "unique",
    "unsafe",  "vendor",   "weak",
};

/* Names with these prefixes belong to the C or C++ library, or to the code that they start programs
 * with. */
static const char *const c_prefixes[] = {
    "__libc_", "__GI_", "__pthread_", "pthread_", "__nptl_", "std::", "_dl_", "__cxa_",
};

static const char *const c_names[] = {
    "_start", "start_thread", "clone", "clone3", "__clone", "__clone3",
};

/* Reasons of Go's runtime in all versions, and of recorded programs. */
static const char *const reasons[] = {
    "AllThreadsSyscall",
    "CountPagesInUse (test)",
    "GC assist marking",
    "GC assist wait",
    "GC background sweeper wait",
    "GC mark assist wait for work",
    "GC mark termination",
    "GC scavenge wait",
    "GC sweep termination",
    "GC sweep wait",
    "GC weak to strong wait",
    "GC worker (active)",
    "GC worker (idle)",
    "GOMAXPROCS",
    "IO wait",
    "all goroutines stack trace",
    "chan receive",
    "chan receive (nil chan)",
    "chan send",
    "chan send (nil chan)",
    "coroutine",
    "debug call",
    "dumping heap",
    "finalizer wait",
    "flushing proc caches",
    "force gc (idle)",
    "forever",
    "garbage collection",
    "garbage collection scan",
    "goroutine profile",
    "goroutine profile cleanup",
    "network",
    "page trace flush",
    "panicwait",
    "preempted",
    "read mem stats",
    "runtime.Gosched",
    "runtime.GoSched",
    "select",
    "select (no cases)",
    "semacquire",
    "sleep",
    "start trace",
    "stop trace",
    "stopping the world",
    "sync",
    "sync.(*Cond).Wait",
    "sync.Cond.Wait",
    "sync.Mutex.Lock",
    "sync.RWMutex.Lock",
    "sync.RWMutex.RLock",
    "sync.WaitGroup.Wait",
    "synctest.Run",
    "synctest.Wait",
    "syscall",
    "system goroutine wait",
    "unknown",
    "unspecified",
    "wait for GC cycle",
    "wait for debug call",
    "wait until GC ends",
    "write heap dump",
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool contains(trail_string text, const char *what)
{
    return text.data && memmem(text.data, text.size, what, strlen(what));
}

static bool is_package_path(trail_string path, char end)
{
    const char *at = path.size > 0 ? memchr(path.data, end, path.size) : NULL;
    const char *slash = path.size > 0 ? memchr(path.data, '/', path.size) : NULL;
    if (slash && (!at || slash < at))
        at = slash;
    return at && text_is_one_of((trail_string){path.data, (size_t)(at - path.data)}, go_packages,
                                COUNT(go_packages));
}

/* Whether the function belongs to a library. The types of its template or function arguments may be
 * the program's. */
static bool is_plain(trail_string function)
{
    const char *open = memchr(function.data, '[', function.size);
    if (memchr(function.data, '<', function.size))
        return false;
    return !open || (contains(function, "[...]") &&
                     !memchr(open + 1, '[', function.size - (size_t)(open + 1 - function.data)));
}

static bool is_go_function(trail_string function)
{
    return is_package_path(function, '.') && is_plain(function);
}

static bool is_c_function(trail_string function)
{
    if (contains(function, "@GLIBC") || text_is_one_of(function, c_names, COUNT(c_names)))
        return true;
    for (size_t i = 0; i < COUNT(c_prefixes); i++)
        if (text_begins(function, c_prefixes[i]))
            return is_plain(function) && !memchr(function.data, '(', function.size);
    return false;
}

/* Returns the library's part of a Go file's path: "src/net/http/server.go"; empty: none. */
static trail_string go_file(trail_string file)
{
    static const char src[] = "/src/";
    const size_t size = sizeof src - 1;
    for (size_t at = file.size; at-- > 0;) {
        if (file.size - at <= size || memcmp(file.data + at, src, size) != 0)
            continue;
        trail_string rest = {file.data + at + size, file.size - at - size};
        if (is_package_path(rest, '/'))
            return (trail_string){file.data + at + 1, file.size - at - 1};
    }
    bool short_path = file.size > 0 && *file.data != '/' && is_package_path(file, '/');
    return short_path ? file : (trail_string){file.data, 0};
}

static bool is_no_file(trail_string file)
{
    static const char *const names[] = {"<autogenerated>", "_cgo_gotypes.go"};
    return file.size == 0 || text_is_one_of(file, names, COUNT(names));
}

/* MARK: Hashing */

static uint64_t rotated(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotated(v[1], 13) ^ v[0];
    v[3] = rotated(v[3], 16) ^ v[2];
    v[0] = rotated(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotated(v[1], 17) ^ v[2];
    v[3] = rotated(v[3], 21) ^ v[0];
    v[2] = rotated(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

/* SipHash-2-4 (Aumasson and Bernstein, 2012). */
static uint64_t sip_hash(const uint64_t key[2], const char *data, size_t size)
{
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                     key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++) {
        word |= (uint64_t)(unsigned char)data[i] << 8 * (i % 8);
        if (i % 8 < 7)
            continue;
        sip_word(v, word);
        word = 0;
    }
    sip_word(v, word | (uint64_t)size << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int anonymizer_init(struct anonymizer *a, const char *secret, trail_error *err)
{
    if (secret) {
        const uint64_t first[2] = {1, 0}, second[2] = {2, 0};
        a->key[0] = sip_hash(first, secret, strlen(secret));
        a->key[1] = sip_hash(second, secret, strlen(secret));
        return 0;
    }
    if (getrandom(a->key, sizeof a->key, 0) == (ssize_t)sizeof a->key)
        return 0;
    error_set(err, TRAIL_IO, "the system gives no random numbers for a key");
    return -1;
}

/* MARK: Stand-ins */

static trail_string stand_in(const struct anonymizer *a, const char *kind, trail_string text,
                             trail_string suffix, struct stand_in *room)
{
    int size = snprintf(room->text, sizeof room->text, "%s_%016llx%.*s", kind,
                        (unsigned long long)sip_hash(a->key, text.data, text.size),
                        (int)suffix.size, suffix.data);
    return (trail_string){room->text, (size_t)size};
}

static const trail_string no_suffix = {"", 0};

trail_string anonymize_text(const struct anonymizer *a, trail_string text, struct stand_in *room)
{
    return text.size == 0 ? text : stand_in(a, "text", text, no_suffix, room);
}

trail_string anonymize_reason(const struct anonymizer *a, trail_string text, struct stand_in *room)
{
    return text_is_one_of(text, reasons, COUNT(reasons)) ? text : anonymize_text(a, text, room);
}

void anonymize_maker(trail_maker *maker)
{
    static const char *const words[] = {"coroutine", "fiber", "goroutine", "job", "task", "thread"};
    trail_string word = {maker->task_word, strlen(maker->task_word)};
    if (word.size > 0 && !text_is_one_of(word, words, COUNT(words)))
        (void)snprintf(maker->task_word, sizeof maker->task_word, "task");
}

/* Returns where ".func1.2", ".gowrap1" and the like begin, which Go appends to name what is inside
 * a function. */
static size_t inner_at(trail_string function)
{
    static const char *const words[] = {"func", "gowrap", "deferwrap", ""};
    size_t end = function.size;
    for (size_t at = end; at-- > 0 && function.size - at < 40;) {
        if (function.data[at] != '.')
            continue;
        trail_string part = {function.data + at + 1, end - at - 1};
        size_t digits = part.size;
        while (digits > 0 && is_digit(part.data[digits - 1]))
            digits--;
        if (digits == part.size ||
            !text_is_one_of((trail_string){part.data, digits}, words, COUNT(words)))
            break;
        end = at;
    }
    return end;
}

/* Returns ".go" from a path; nothing if it is too long to show only the language. */
static trail_string extension(trail_string file)
{
    static const char *const known[] = {".go", ".s", ".c", ".h", ".cc", ".cpp", ".hpp", ".cxx"};
    const char *dot = memrchr(file.data, '.', file.size);
    trail_string end = {dot, dot ? file.size - (size_t)(dot - file.data) : 0};
    return dot && text_is_one_of(end, known, COUNT(known)) ? end : no_suffix;
}

static trail_string kept_go_file(trail_string file, trail_string part, struct stand_in *room)
{
    int size = snprintf(room->text, sizeof room->text, "%s%.*s",
                        part.size < file.size ? "$GOROOT/" : "", (int)part.size, part.data);
    bool fits = size > 0 && (size_t)size < sizeof room->text;
    return fits ? (trail_string){room->text, (size_t)size} : part;
}

void anonymize_frame(const struct anonymizer *a, trail_string *function, trail_string *file,
                     struct stand_in rooms[2])
{
    trail_string go = go_file(*file);
    bool of_go =
        function->size > 0 && is_go_function(*function) && (go.size > 0 || is_no_file(*file));
    bool of_c = function->size > 0 && is_c_function(*function);
    bool c_file = of_c && (text_begins(*file, "./") || text_begins(*file, "/usr/include/"));
    if (function->size > 0 && !of_go && !of_c) {
        size_t inner = inner_at(*function);
        trail_string suffix = {function->data + inner, function->size - inner};
        *function = stand_in(a, "func", (trail_string){function->data, inner}, suffix, &rooms[0]);
    }
    if (of_go && go.size > 0)
        *file = kept_go_file(*file, go, &rooms[1]);
    else if (file->size > 0 && !c_file && !(of_go && is_no_file(*file)))
        *file = stand_in(a, "file", *file, extension(*file), &rooms[1]);
}
