/*
 * Stacks of spans, for lanes that are unfolded: asked for one by one where a span is wide enough for its frames
 * to be read, and kept.
 */
import { signal } from "@preact/signals";
import { api, type Kind } from "./api";

const MOST_KEPT = 5000;
const MOST_ASKED = 12;

const kept = new Map<string, string[]>();
const asked = new Set<string>();

/* Counts up when a stack has come. */
export const framesArrived = signal(0);

/* Root first; undefined until it is known. */
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
