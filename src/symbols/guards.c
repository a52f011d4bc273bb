/* Finds guards among the variables of a function, by DWARF: see guards.h. */
#include "symbols/guards.h"

#include <dwarf.h>
#include <string.h>

#define MOST_NESTED 64

/* The register numbers of DWARF for AMD64 (System V ABI). */
#define STACK_POINTER 7

/* Types of guards by the start of their names, and the members that refer to the lock. */
static const struct {
    const char *type, *member;
    enum wire_log wait;
} types[] = {
    {"MutexGuard<", "lock", WIRE_LOG_MUTEX},
    {"RwLockReadGuard<", "inner_lock", WIRE_LOG_RDLOCK},
    {"RwLockWriteGuard<", "lock", WIRE_LOG_WRLOCK},
};

struct search {
    uint64_t address;
    bool from_cfa; /* what DW_OP_fbreg counts from */
    struct guard *guards;
    size_t count, max;
};

/* Sets *from_cfa; false: the function's variables are located in another way. */
static bool find_base(Dwarf_Die *function, bool *from_cfa)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops;
    size_t count;
    if (dwarf_getlocation(dwarf_attr_integrate(function, DW_AT_frame_base, &attribute), &ops,
                          &count) != 0 ||
        count != 1)
        return false;
    *from_cfa = ops[0].atom == DW_OP_call_frame_cfa;
    return *from_cfa || ops[0].atom == DW_OP_reg0 + STACK_POINTER;
}

/* Sets *offset to a member's offset; false: no such member. */
static bool find_member(Dwarf_Die *type, const char *name, int64_t *offset)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    Dwarf_Die die;
    if (dwarf_child(type, &die) != 0)
        return false;
    do {
        const char *own = dwarf_tag(&die) == DW_TAG_member ? dwarf_diename(&die) : NULL;
        if (!own || strcmp(own, name) != 0)
            continue;
        if (dwarf_formudata(dwarf_attr(&die, DW_AT_data_member_location, &attribute), &value) != 0)
            return false;
        *offset = (int64_t)value;
        return true;
    } while (dwarf_siblingof(&die, &die) == 0);
    return false;
}

static void take_variable(struct search *search, Dwarf_Die *variable)
{
    Dwarf_Attribute attribute;
    Dwarf_Die type;
    Dwarf_Op *ops;
    size_t count;
    int64_t member;
    const char *name;
    if (!dwarf_formref_die(dwarf_attr_integrate(variable, DW_AT_type, &attribute), &type) ||
        !(name = dwarf_diename(&type)))
        return;
    for (size_t i = 0; i < sizeof types / sizeof *types && search->count < search->max; i++) {
        if (strncmp(name, types[i].type, strlen(types[i].type)) != 0 ||
            !find_member(&type, types[i].member, &member) ||
            dwarf_getlocation_addr(dwarf_attr(variable, DW_AT_location, &attribute),
                                   search->address, &ops, &count, 1) != 1 ||
            count != 1 || ops[0].atom != DW_OP_fbreg)
            continue;
        search->guards[search->count++] = (struct guard){
            .offset = (int64_t)ops[0].number + member,
            .wait = types[i].wait,
            .from_cfa = search->from_cfa,
        };
    }
}

static void walk(struct search *search, Dwarf_Die *parent, unsigned nested)
{
    Dwarf_Die die;
    if (nested == MOST_NESTED || dwarf_child(parent, &die) != 0)
        return;
    do {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter)
            take_variable(search, &die);
        else if ((tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine) &&
                 dwarf_haspc(&die, search->address) == 1)
            walk(search, &die, nested + 1);
    } while (dwarf_siblingof(&die, &die) == 0);
}

size_t guards_find(Dwarf_Die *function, uint64_t address, struct guard *guards, size_t max)
{
    struct search search = {.address = address, .guards = guards, .max = max};
    if (find_base(function, &search.from_cfa))
        walk(&search, function, 0);
    return search.count;
}
