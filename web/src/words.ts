/*
 * The vocabulary in which the page speaks, as the server's status has it: of goroutines and Ps for traces of Go programs,
 * of threads and CPU slots for those of trail record, in a host's own words for others (src/words/vocabulary.def).
 */
import { computed } from "@preact/signals";
import { status } from "./state";

/* Until the status is there. */
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
    without_slot: "without P",
    lock_waits: "locks, channels, select",
    no_reason: "no reason given",
};

const terms = computed(() => ({ ...go, ...status.value?.words }));

export function term(name: string): string {
    return terms.value[name] ?? name;
}

/* Of trail record's traces a task is a thread of the operating system, so there are no lanes of those beside it. */
export function hasMachines(): boolean {
    return term("task") !== "thread";
}

/* A text with terms in the place of their keys in braces; a large first letter makes the term's large: "{Tasks}". */
export function inWords(text: string): string {
    return text.replace(/\{(\w+)\}/g, (_, key: string) => {
        const found = term(key.toLowerCase());
        return key[0] === key[0].toLowerCase() ? found : found[0].toUpperCase() + found.slice(1);
    });
}
