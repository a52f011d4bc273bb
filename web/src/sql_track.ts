/*
 * Rows of SQL in the timeline: rows with a time become a track above the lanes, and highlights on
 * the lanes of their goroutines; a numeric column becomes a counter.
 */
import { computed, signal } from "@preact/signals";
import { laneOf } from "./lanes";
import { end } from "./state";

export type Row = Record<string, unknown>;

/* A row in ns since the first event. */
export interface Placed {
    from: number;
    to: number;
    goroutine?: number;
    row: Row;
}

export interface Counter {
    name: string;
    least: number;
    most: number;
    /* In time order; each value holds until the next. */
    points: { at: number; value: number }[];
}

/* What is shown in the timeline; null: nothing. */
export const placed = signal<Placed[] | null>(null);
export const counter = signal<Counter | null>(null);

/* Columns of the tables of `trail sql`, by their meaning in a row; the first that a result has
 * counts. */
const begins = ["begin_ns", "start_ns", "time_ns", "since_start", "creation_ns"];
const ends = ["end_ns"];
const lengths = ["duration_ns", "total_ns"];
const tasks = ["goroutine", "g"];

function column(row: Row, names: string[]): string | undefined {
    return names.find((name) => row[name] !== undefined && row[name] !== null);
}

/* Numbers over 2^53 are texts in the answer. */
function numberOf(value: unknown): number | null {
    const isNumber = typeof value === "number" || /^-?\d+(\.\d+)?$/.test(String(value ?? ""));
    return isNumber && value !== null && value !== "" ? Number(value) : null;
}

/* Times in the tables are on the trace's clock; "14399873ns" counts from the first event, as do
 * times before it. */
function timeOf(value: unknown, origin: number): number | null {
    const since = /^(\d+)ns$/.exec(String(value ?? ""));
    if (since) return Number(since[1]);
    const time = numberOf(value);
    return time !== null && time >= origin ? time - origin : time;
}

function place(row: Row, origin: number): Placed | null {
    const begin = column(row, begins);
    const from = begin ? timeOf(row[begin], origin) : null;
    if (from === null || from < 0) return null;
    const last = column(row, ends);
    const length = column(row, lengths);
    const to = last
        ? timeOf(row[last], origin)
        : from + ((length ? numberOf(row[length]) : null) ?? 0);
    const task = column(row, tasks);
    const id = task ? numberOf(row[task]) : null;
    return { from, to: Math.max(from, to ?? end.peek()), goroutine: id ?? undefined, row };
}

/* The rows that have a time, in time order. */
export function placesOf(rows: Row[], origin: number): Placed[] {
    const found = rows.map((row) => place(row, origin)).filter((one) => one !== null);
    return found.sort((a, b) => a.from - b.from);
}

/* The columns that can be shown as a counter: numbers that are neither times nor IDs. */
export function countable(rows: Row[]): string[] {
    const known = new Set([...begins, ...ends, ...tasks, "id", "stack", "thread", "proc", "task"]);
    const names = Object.keys(rows[0] ?? {}).filter((name) => !known.has(name));
    return names.filter((name) => {
        const values = rows.map((row) => row[name]).filter((value) => value !== null);
        return values.length > 0 && values.every((value) => numberOf(value) !== null);
    });
}

export function counterOf(places: Placed[], name: string): Counter | null {
    const points = places.flatMap(({ from: at, row }) => {
        const value = numberOf(row[name]);
        return value === null ? [] : [{ at, value }];
    });
    if (points.length === 0) return null;
    let [least, most] = [0, Number.NEGATIVE_INFINITY];
    for (const { value } of points) {
        least = Math.min(least, value);
        most = Math.max(most, value);
    }
    return { name, least, most, points };
}

export function clearTrack(): void {
    placed.value = null;
    counter.value = null;
}

/* By lane of goroutines, in time order. */
export const placedByLane = computed<ReadonlyMap<number, Placed[]>>(() => {
    const found = new Map<number, Placed[]>();
    for (const one of placed.value ?? []) {
        const lane = one.goroutine === undefined ? null : laneOf(one.goroutine, one.from);
        if (lane === null) continue;
        const others = found.get(lane);
        if (others) others.push(one);
        else found.set(lane, [one]);
    }
    return found;
});
