/*
 * How long each goroutine waited, and for what; requested page by page when lanes are first sorted
 * by it.
 */
import { computed, effect, signal } from "@preact/signals";
import { api } from "./api";
import type { WaitClass } from "./colors";
import { kind, sort, status } from "./state";
import { WaitTable } from "./wait_table";
import { hasMachines, term } from "./words";

/* Time in ns, by reason, and by kind of wait where that is recorded. */
export interface Waits {
    block_ns: Record<string, number>;
    waits?: { wait_kind?: string; reason: string; ns: number }[];
}

/* Times by kind of wait, or by reason if kinds are not recorded. */
export function waitsOf(of: Waits): (readonly [string, number])[] {
    return of.waits
        ? of.waits.map((wait) => [wait.wait_kind ?? wait.reason, wait.ns] as const)
        : Object.entries(of.block_ns);
}

/* Titles of kinds of waits by their words; build.mjs reads them from src/wire/wait_kinds.def. */
declare const WAIT_TITLES: Record<string, string>;
const titles = WAIT_TITLES;

declare const WAIT_CLASSES: Record<string, WaitClass>;
const classes = WAIT_CLASSES;

/* The class of a kind of wait or a reason. */
export function waitClassOf(name: string): WaitClass {
    return classes[name] ?? "unknown";
}

/* The classes as the legend has them; the runtime's waits have its colour. */
export const legendWaits: WaitClass[] = ["lock", "cond", "io", "sleep", "idle", "unknown"];

const classWords: Record<WaitClass, string> = {
    lock: "lock",
    cond: "condition",
    io: "I/O",
    sleep: "sleep",
    idle: "idle",
    runtime: "runtime, GC",
    unknown: "not recorded",
};

/* Of conditions, goroutines mostly wait for channels. Their waits for a WaitGroup have no reason of their own: "sync". */
export function waitClassWord(name: WaitClass): string {
    if (name === "lock" && term("task") === "goroutine") return "lock, WaitGroup";
    return name === "cond" && hasMachines() ? "channel" : classWords[name];
}

/* The title of a kind of wait or a reason. */
export function waitTitle(name: string): string {
    return titles[name] ?? (name || `(${term("no_reason")})`);
}

/* "mutex cache_mu", "sync"; empty: no reason is given. */
export function waitName(of: { reason?: string; wait_kind?: string; object?: string }): string {
    if (!of.wait_kind) return of.reason ?? "";
    const title = waitTitle(of.wait_kind);
    return of.object ? `${title} ${of.object}` : title;
}

/* The one with the most time. */
export function mostly(of: Waits): string {
    const [most] = waitsOf(of).sort((a, b) => b[1] - a[1]);
    return most && most[1] > 0 ? waitTitle(most[0]) : "";
}

/* By lane of goroutines. Empty: not known yet. */
export const waits = signal(new WaitTable());

/* All reasons, sorted by name. */
export const reasons = computed<string[]>(() => [...waits.value.names].sort());

/* The table changes once, with the last page, because that sorts all lanes. */
async function load(): Promise<void> {
    const found = new WaitTable();
    let all = 1;
    while (found.count < all) {
        const { rows, names, ...answer } = await api.waits("goroutine", found.count);
        all = answer.all;
        found.add(rows, names);
        if (rows.length === 0) break;
    }
    waits.value = found;
}

export function keepWaits(): void {
    let asked = false;
    effect(() => {
        const isWanted = kind.value === "goroutine" && /^(waiting|mostly)$/.test(sort.value);
        if (asked || !isWanted || !status.value?.done) return;
        asked = true;
        load().catch(() => {
            asked = false;
        });
    });
}
