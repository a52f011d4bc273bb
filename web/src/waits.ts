/*
 * Waiting time of each goroutine by reason, from the analysis of goroutines; requested when lanes are first sorted
 * by it.
 */
import { computed, effect, signal } from "@preact/signals";
import { api } from "./api";
import { kind, sort, status } from "./state";

/* Time in ns, by reason. */
type Waits = Record<string, number>;

interface Goroutines {
    origin_ns: number;
    goroutines: { id: number; creation_ns: number; block_ns: Waits }[];
}

interface Entry {
    waits: Waits;
    mostly: string;
}

/* By number and begin, because numbers may be reused; null: not known yet. */
const entries = signal<ReadonlyMap<string, Entry> | null>(null);

function keyOf(id: number, begin: number): string {
    return `${id} ${begin}`;
}

export function waitsOf(lane: { id: number; begin: number }): Entry | undefined {
    return entries.value?.get(keyOf(lane.id, lane.begin));
}

/* "mutex cache_mu", "sync"; empty: no reason is given. */
export function waitName(of: { reason?: string; wait_kind?: string; object?: string }): string {
    if (of.wait_kind) return of.object ? `${of.wait_kind} ${of.object}` : of.wait_kind;
    return of.reason ?? "";
}

/* The reason with the most waiting time. */
export function mostly(of: Waits): string {
    const [most] = Object.entries(of).sort((a, b) => b[1] - a[1]);
    return most && most[1] > 0 ? most[0] || "(no reason given)" : "";
}

/* All reasons, sorted by name. */
export const reasons = computed<string[]>(() => {
    const found = new Set<string>();
    for (const { waits } of entries.value?.values() ?? [])
        for (const name of Object.keys(waits)) found.add(name);
    return [...found].sort();
});

export function keepWaits(): void {
    let asked = false;
    effect(() => {
        const isWanted = kind.value === "goroutine" && /^(waiting|mostly)$/.test(sort.value);
        if (asked || !isWanted || !status.value?.done || !status.value.can_run) return;
        asked = true;
        api.run<Goroutines>("goroutines", {})
            .then(({ origin_ns, goroutines }) => {
                entries.value = new Map(
                    goroutines.map((of) => [
                        keyOf(of.id, of.creation_ns - origin_ns),
                        { waits: of.block_ns, mostly: mostly(of.block_ns) },
                    ]),
                );
            })
            .catch(() => {
                asked = false;
            });
    });
}
