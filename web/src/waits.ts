/*
 * How long each goroutine waited, by what for; requested, a page of lanes after the other, when lanes are first sorted by it.
 */
import { computed, effect, signal } from "@preact/signals";
import { api } from "./api";
import { kind, sort, status } from "./state";

/* Time in ns, by reason, or by kind of wait where that is recorded. */
type Waits = Record<string, number>;

interface Entry {
    waits: Waits;
    mostly: string;
}

/* By lane of goroutines; empty: not known yet. */
const entries = signal<readonly Entry[]>([]);

export function waitsOf(lane: { lane: number }): Entry | undefined {
    return entries.value[lane.lane];
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
    for (const { waits } of entries.value) for (const name of Object.keys(waits)) found.add(name);
    return [...found].sort();
});

function entryOf(row: number[], names: string[]): Entry {
    const waits: Waits = {};
    for (let i = 0; i + 1 < row.length; i += 2) {
        const name = names[row[i]];
        waits[name] = (waits[name] ?? 0) + row[i + 1];
    }
    return { waits, mostly: mostly(waits) };
}

/* The entries change once, with the last page, because that sorts all lanes. */
async function load(): Promise<void> {
    const found: Entry[] = [];
    let all = 1;
    while (found.length < all) {
        const { rows, names, ...answer } = await api.waits("goroutine", found.length);
        all = answer.all;
        for (const row of rows) found.push(entryOf(row, names));
        if (rows.length === 0) break;
    }
    entries.value = found;
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
