/*
 * How long each goroutine waited, by what for; requested, a page of lanes after the other, when lanes are first sorted by it.
 */
import { computed, effect, signal } from "@preact/signals";
import { api } from "./api";
import { kind, sort, status } from "./state";
import { WaitTable } from "./wait_table";

/* Time in ns, by reason, or by kind of wait where that is recorded. */
type Waits = Record<string, number>;

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
