/*
 * The vocabulary of the page, from the server's status: goroutines and Ps for traces of Go
 * programs, threads and CPU slots for trail record, a host's own words for others
 * (src/words/vocabulary.def).
 */
import { computed } from "@preact/signals";
import { status } from "./state";

/* Until the status arrives. */
const go: Record<string, string> = {
    task: "goroutine",
    tasks: "goroutines",
    task_id: "G",
    slot: "P",
    slots: "Ps",
    slots_idle: "Ps idle",
    slot_id: "P ",
    slot_short: "P",
    machine_short: "M",
    slot_lost: "P released",
    lock_waits: "locks, channels, select",
    no_reason: "no reason given",
};

const terms = computed(() => ({ ...go, ...status.value?.words }));

export function term(name: string): string {
    return terms.value[name] ?? name;
}

export function isRecorded(): boolean {
    return status.value?.made_by === "trail record";
}

/* In trail record's traces a task is an operating-system thread, so there are no separate lanes for
 * those. */
export function hasMachines(): boolean {
    return term("task") !== "thread";
}

/* Replaces keys in braces with their terms; a capital first letter capitalises the term:
 * "{Tasks}". */
export function inWords(text: string): string {
    return text.replace(/\{(\w+)\}/g, (_, key: string) => {
        const found = term(key.toLowerCase());
        return key[0] === key[0].toLowerCase() ? found : found[0].toUpperCase() + found.slice(1);
    });
}
