/*
 * A table of the first of very many rows. The server sorts and searches all of them: above the
 * table are their number, the sort order, and a button for more; the words of the table's filter go
 * to the server.
 */
import { type Signal, useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { Query } from "./api";
import { Choice } from "./choice";
import { count } from "./format";

/* Words are searched for once they have not changed for this many ms, because each request reads
 * the trace. */
const PAUSE = 300;

/* The sort orders, by the names of the command's --sort, with the titles of the columns. */
export type Sorts = readonly (readonly [string, string])[];

export interface FirstRows {
    limit: Signal<number>;
    /* One of `sorts`, if there are any. */
    sort: Signal<string>;
    sorts?: Sorts;
    match: Signal<string>;
    onWords: (words: string) => void;
}

export function useFirst(limit: number, sorts?: Sorts): FirstRows {
    const rows = {
        limit: useSignal(limit),
        sort: useSignal(sorts?.[0][0] ?? ""),
        match: useSignal(""),
    };
    const timer = useRef(0);
    const onWords = useMemo(
        () => (words: string) => {
            clearTimeout(timer.current);
            timer.current = setTimeout(() => {
                rows.match.value = words.trim();
            }, PAUSE);
        },
        [rows.match],
    );
    return { ...rows, sorts, onWords };
}

/* The parameters of the command. */
export function queryOf(rows: FirstRows): Query {
    return {
        limit: rows.limit.value,
        match: rows.match.value || undefined,
        ...(rows.sorts && { sort: rows.sort.value }),
    };
}

/* The title of the column by which they are sorted. */
export function sortedBy({ sorts, sort }: FirstRows): string | undefined {
    return sorts?.find(([name]) => name === sort.value)?.[1];
}

/* `by` is the sort order if there is no choice. */
export function First(props: { shown: number; all: number; rows: FirstRows; by?: string }) {
    const { shown, all, rows, by } = props;
    return (
        <p class="about">
            The first {count(shown)} of {count(all)} {by}
            {rows.sorts && (
                <Choice
                    label="by"
                    value={rows.sort.value}
                    options={rows.sorts}
                    onChoose={(name) => {
                        rows.sort.value = name;
                    }}
                />
            )}{" "}
            {shown < all && (
                <button
                    type="button"
                    onClick={() => {
                        rows.limit.value *= 2;
                    }}
                >
                    Twice as many
                </button>
            )}
        </p>
    );
}
