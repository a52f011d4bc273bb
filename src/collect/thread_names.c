/* Names threads by what they run: see thread_names.h. */
#include "collect/thread_names.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "collect/parts.h"

/* Returns the outermost frame that belongs to the program, preferring one with a name; NULL:
 * none. */
static const struct v2_frame *outermost(struct collect *c, uint64_t key)
{
    const struct named_stack *stack = key ? code_named_stack(c, key) : NULL;
    return stack ? code_own(c, stack->frames, stack->count, CODE_OUTERMOST) : NULL;
}

/* Returns the end of a template's first argument. */
static const char *argument_end(const char *text)
{
    int depth = 0;
    for (; *text && (depth > 0 || (*text != ',' && *text != '>')); text++) {
        if (strchr("<({[", *text))
            depth++;
        else if (strchr(">)}]", *text))
            depth--;
    }
    return text;
}

/* What precedes the elements: the callable, and its arguments. */
static const char in_tuple[] = "_Invoker<std::tuple<";

/*
 * Writes the name of what a libstdc++ thread runs, from the name of the vtable of
 * std::thread::_State_impl<std::thread::_Invoker<std::tuple<CALLABLE, ARGUMENTS...> > >, where
 * CALLABLE may be std::async's own, whose name contains such a tuple again. False: not known, for
 * example a pointer to a function, whose name shows only the type.
 */
static bool callable_name(const char *text, char *name, size_t size)
{
    const char *at, *last = NULL, *end;
    for (at = text; (at = strstr(at, in_tuple)) != NULL; last = at)
        at += sizeof in_tuple - 1;
    if (!last)
        return false;
    end = argument_end(last);
    if (end == last || end[-1] == '*' || memmem(last, (size_t)(end - last), "*)", 2))
        return false;
    snprintf(name, size, "%.*s%s", (int)(end - last), last,
             end[-1] == '}' || memchr(last, '{', (size_t)(end - last)) ? "" : "::operator()");
    return true;
}

/* Returns how many elements of the tuple at the start of a type are pointers to functions; for
 * std::async, of the tuple in its shared state. */
static size_t count_pointers(const char *type)
{
    const char *async = strstr(type, "_Async_state_impl<");
    const char *at = strstr(async ? async : type, in_tuple), *end;
    size_t count = 0;
    for (at = at ? at + sizeof in_tuple - 1 : ""; *at; at = *end == ',' ? end + 1 : "") {
        end = argument_end(at);
        count += memmem(at, (size_t)(end - at), "*)(", 3) != NULL;
    }
    return count;
}

/*
 * Returns the function whose pointer a libstdc++ thread was given. The last element of a tuple
 * comes first in memory, so the function follows those among its arguments. In a program without
 * symbols it may be the function that runs a lambda. NULL: not known.
 */
static const struct v2_frame *given_function(struct collect *c, const struct thread *thread,
                                             const char *type)
{
    const struct v2_frame *last = NULL;
    size_t found = 0, expected = *type ? count_pointers(type) : 1;
    /* What follows is leftover memory. */
    for (size_t i = 0; i < sizeof thread->given.words / sizeof thread->given.words[0]; i++) {
        if (*type && found == expected)
            break;
        const struct v2_frame *frame = code_own_function(c, thread->given.words[i]);
        found += frame != NULL;
        last = frame ? frame : last;
    }
    return found && found == expected ? last : code_own_function(c, thread->given.runs);
}

/*
 * A thread without a start routine is the process's first, or was created by an unwrapped call or
 * before the recording.
 */
static struct v2_frame frame_without_routine(struct collect *c, const struct thread *thread)
{
    const struct v2_frame *seen = outermost(c, thread->first_stack);
    bool first = thread->tid == 0 || thread->tid == (uint64_t)collect_pid(c);
    if (!first && seen)
        return *seen;
    return (struct v2_frame){.pc = CODE_FIRST_NUMBER - (first ? 1 : 2),
                             .function = text_from(first ? "main" : "unknown")};
}

/*
 * Finds the frame that names a goroutine: its start routine. If a runtime starts all threads with
 * the same routine, it is what the thread was given to run, or the outermost function of the
 * thread's first stack. The function may lie in `name`. Returns false if nothing is known.
 */
static bool routine_frame(struct collect *c, const struct thread *thread, char name[V2_MAX_STRING],
                          struct v2_frame *frame)
{
    if (!thread->routine) {
        *frame = frame_without_routine(c, thread);
        return true;
    }
    /* Frames expect a return address: one byte into the routine. */
    const struct named_pc *named = code_named_pc(c, thread->routine + 1);
    if (!named)
        return false;
    *frame = named->frames[named->count - 1];
    if (code_is_wrapper(c, frame)) {
        const struct v2_frame *seen = outermost(c, thread->first_stack);
        const struct v2_frame *given;
        char type[4096] = "";
        bool known = thread->given.vtable &&
                     code_object(c, thread->given.vtable, type, sizeof type) &&
                     callable_name(type, name, V2_MAX_STRING);
        /* A function that was seen running also has a line. Without symbols its name is an address
         * within it, which differs between threads that run the same function. */
        bool has_name = seen && code_rank(c, seen) != FRAME_ADDRESS;
        if (has_name && (!known || text_begins(seen->function, name)))
            *frame = *seen;
        else if (!known && (given = given_function(c, thread, type)) != NULL)
            *frame = *given;
        else if (known)
            *frame = (struct v2_frame){
                CODE_FIRST_NUMBER + c->trace->next_frame++, text_from(name), {0}, 0};
        else if (seen)
            *frame = *seen;
    }
    return true;
}

uint64_t thread_name_routine(struct collect *c, const struct thread *thread)
{
    char name[V2_MAX_STRING];
    struct v2_frame frame;
    return routine_frame(c, thread, name, &frame) ? v2_writer_stack(c->trace->out.out, &frame, 1)
                                                  : 0;
}

uint64_t thread_name_stack(struct collect *c, const struct thread *thread)
{
    char room[V2_MAX_STRING], name[2 * V2_MAX_STRING];
    const char *label = collect_label(c);
    struct v2_frame frame = {.function = text_from(thread->name)};
    if (!thread->name[0] && !label)
        return thread_name_routine(c, thread);
    if (!thread->name[0])
        (void)routine_frame(c, thread, room, &frame);
    int size = snprintf(name, sizeof name, "%s%s%.*s", label ? label : "", label ? ": " : "",
                        (int)frame.function.size, frame.function.data ? frame.function.data : "");
    frame.function = (trail_string){name, (size_t)size};
    frame.pc = CODE_FIRST_NUMBER + c->trace->next_frame++;
    return v2_writer_stack(c->trace->out.out, &frame, 1);
}

void thread_name_text(struct collect *c, const struct thread *thread, char *text, size_t size)
{
    char name[V2_MAX_STRING];
    struct v2_frame frame = {.function = text_from(thread->name)};
    if (!thread->name[0] && !routine_frame(c, thread, name, &frame))
        frame.function = text_from("");
    snprintf(text, size, "%.*s", (int)(frame.function.size < size ? frame.function.size : size - 1),
             frame.function.data ? frame.function.data : "");
}
