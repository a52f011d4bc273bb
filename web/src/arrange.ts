/*
 * Which lanes are shown, and in which order: the pinned ones, then those that match the filter,
 * sorted and grouped. Lanes are numbers here; the keys for sorting and grouping are functions of
 * these.
 */
import type { LaneTable } from "./lane_table";
import { each, type Work } from "./slices";
import { sorted } from "./sorted";

/* By ascending keys, equal ones in order of appearance. With `texts`, keys are indexes into them,
 * and the order of the texts counts; -1 is last. */
export interface Order {
    key: (lane: number) => number;
    texts?: readonly string[];
}

/* Lanes with the same text form a group. Computed once for each key. */
export interface Grouping {
    key: (lane: number) => number | string;
    text: (key: number | string) => string;
    /* Whether a group with a single lane has no row of its own. */
    hidesSingle: boolean;
}

export interface Wanted {
    table: LaneTable;
    filter: string;
    pins: readonly number[];
    order: Order | null;
    grouping: Grouping | null;
    /* Lanes that are hidden although they match. `done` is called when all have been tested. */
    isLeftOut?: { test: (lane: number) => boolean; done: () => void };
}

export interface Groups {
    names: string[];
    /* Where each group begins in the order; finally, where the last one ends. */
    begins: Uint32Array;
    hidesSingle: boolean;
}

export interface Arrangement {
    table: LaneTable;
    order: Uint32Array;
    /* The first lanes of the order are pinned and in no group. */
    pins: number;
    groups: Groups | null;
}

/* MARK: Filter */

type Test = (lane: number) => boolean;

/* Whether a lane's name or ID contains the word or, for "-word", does not. */
function* wordTest({ names, columns }: LaneTable, word: string): Work<Test> {
    const isNot = word.startsWith("-") && word.length > 1;
    const part = isNot ? word.slice(1) : word;
    const isNamed = new Uint8Array(names.length);
    yield* each(names.length, (i) => {
        isNamed[i] = Number(names[i].toLowerCase().includes(part));
    });
    const { id, name } = columns;
    if (!/^\d+$/.test(part)) return (lane) => (isNamed[name[lane]] === 1) !== isNot;
    return (lane) => (isNamed[name[lane]] === 1 || String(id[lane]).includes(part)) !== isNot;
}

/* The lanes that match all words of the filter. */
function* matching({ table, filter, pins, isLeftOut }: Wanted): Work<Uint32Array> {
    const tests: Test[] = [];
    for (const word of filter.toLowerCase().split(/\s+/).filter(Boolean))
        tests.push(yield* wordTest(table, word));
    if (pins.length > 0) {
        const isPinned = new Set(pins);
        tests.push((lane) => !isPinned.has(lane));
    }
    if (isLeftOut) tests.push((lane) => !isLeftOut.test(lane));
    const found = new Uint32Array(table.count);
    let count = 0;
    yield* each(table.count, (lane) => {
        if (tests.every((test) => test(lane))) found[count++] = lane;
    });
    isLeftOut?.done();
    return found.subarray(0, count);
}

/* MARK: Order */

/* The rank of each text among all. There are far fewer texts than lanes. */
function* ranksOf(texts: readonly string[]): Work<Float64Array> {
    const { compare } = new Intl.Collator();
    const numbers = Uint32Array.from(texts.keys());
    const inOrder = yield* sorted(numbers, (a, b) => compare(texts[a], texts[b]));
    const ranks = new Float64Array(texts.length);
    yield* each(inOrder.length, (i) => {
        ranks[inOrder[i]] = i;
    });
    return ranks;
}

function* inOrder(lanes: Uint32Array, count: number, order: Order): Work<Uint32Array> {
    const ranks = order.texts && (yield* ranksOf(order.texts));
    const keys = new Float64Array(count);
    yield* each(lanes.length, (i) => {
        const key = order.key(lanes[i]);
        keys[lanes[i]] = ranks ? (ranks[key] ?? Number.POSITIVE_INFINITY) : key;
    });
    return yield* sorted(lanes, (a, b) => keys[a] - keys[b]);
}

/* MARK: Groups */

/* Puts the lanes of each group together; groups are in the order of their first lanes. */
function* inGroups(
    lanes: Uint32Array,
    by: Grouping,
): Work<{ lanes: Uint32Array; names: string[]; begins: Uint32Array }> {
    const byKey = new Map<number | string, number>();
    const byText = new Map<string, number>();
    const names: string[] = [];
    const counts: number[] = [];
    const add = (key: number | string): number => {
        const text = by.text(key);
        const group = byText.get(text) ?? names.length;
        if (group === names.length) {
            names.push(text);
            counts.push(0);
            byText.set(text, group);
        }
        byKey.set(key, group);
        return group;
    };
    const groupOf = new Uint32Array(lanes.length);
    yield* each(lanes.length, (i) => {
        const key = by.key(lanes[i]);
        groupOf[i] = byKey.get(key) ?? add(key);
        counts[groupOf[i]]++;
    });
    const begins = new Uint32Array(names.length + 1);
    yield* each(names.length, (group) => {
        begins[group + 1] = begins[group] + counts[group];
    });
    const next = begins.slice();
    const together = new Uint32Array(lanes.length);
    yield* each(lanes.length, (i) => {
        together[next[groupOf[i]]++] = lanes[i];
    });
    return { lanes: together, names, begins };
}

/* MARK: All of it */

export function* arrange(wanted: Wanted): Work<Arrangement> {
    const { table, grouping } = wanted;
    const pins = [...new Set(wanted.pins)].filter((lane) => table.get(lane));
    let lanes = yield* matching({ ...wanted, pins });
    if (wanted.order) lanes = yield* inOrder(lanes, table.count, wanted.order);
    let groups: Groups | null = null;
    if (grouping) {
        const found = yield* inGroups(lanes, grouping);
        lanes = found.lanes;
        const begins = found.begins.map((place) => pins.length + place);
        groups = { names: found.names, begins, hidesSingle: grouping.hidesSingle };
    }
    const order = new Uint32Array(pins.length + lanes.length);
    order.set(pins);
    order.set(lanes, pins.length);
    return { table, order, pins: pins.length, groups };
}
