/* A stable merge sort that yields: the built-in sort blocks the page until it is done. */
import { PART, type Work } from "./slices";

type Compare = (a: number, b: number) => number;

/* Length of the pieces that the built-in sort sorts. */
const PIECE = 256;

/* Merges [low, middle) and [middle, high). */
function* merge(
    from: Uint32Array,
    to: Uint32Array,
    [low, middle, high]: [number, number, number],
    compare: Compare,
): Work<void> {
    /* Whether the item at b comes before the one at a. */
    const isAfter = (a: number, b: number) => compare(from[a], from[b]) > 0;
    if (middle === high || !isAfter(middle - 1, middle)) {
        to.set(from.subarray(low, high), low);
        yield;
        return;
    }
    let [a, b] = [low, middle];
    for (let i = low; i < high; ) {
        for (const stop = Math.min(high, i + PART); i < stop; i++)
            to[i] = b === high || (a < middle && !isAfter(a, b)) ? from[a++] : from[b++];
        yield;
    }
}

/* Returns the items in order, in their own array or another one; their own array is overwritten. */
export function* sorted(items: Uint32Array, compare: Compare): Work<Uint32Array> {
    const count = items.length;
    for (let low = 0; low < count; low += PIECE) {
        items.subarray(low, low + PIECE).sort(compare);
        yield;
    }
    let from = items;
    let to: Uint32Array = new Uint32Array(count);
    for (let length = PIECE; length < count; length *= 2) {
        for (let low = 0; low < count; low += 2 * length) {
            const middle = Math.min(low + length, count);
            yield* merge(from, to, [low, middle, Math.min(middle + length, count)], compare);
        }
        [from, to] = [to, from];
    }
    return from;
}
