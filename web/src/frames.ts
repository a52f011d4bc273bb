/*
 * Stacks of spans in unfolded lanes: requested one by one for spans wide enough to show their frames, and cached.
 */
import { signal } from "@preact/signals";
import { api, type Kind } from "./api";

const MOST_KEPT = 5000;
const MOST_ASKED = 12;

const kept = new Map<string, string[]>();
const asked = new Set<string>();

/* Incremented when a stack arrives. */
export const framesArrived = signal(0);

/* The functions of a span's stack, outermost first; undefined until known. */
export function framesOf(kind: Kind, lane: number, span: number): string[] | undefined {
    const key = `${kind} ${lane} ${span}`;
    const known = kept.get(key);
    if (known || asked.has(key) || asked.size >= MOST_ASKED) return known;
    asked.add(key);
    api.stackOf(kind, lane, span)
        .then((frames) => {
            if (kept.size > MOST_KEPT) kept.clear();
            kept.set(key, frames.map((frame) => frame.function).reverse());
        })
        .catch(() => kept.set(key, []))
        .finally(() => {
            asked.delete(key);
            framesArrived.value++;
        });
    return undefined;
}
