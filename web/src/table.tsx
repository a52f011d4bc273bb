/* A table that can be sorted by column, filtered, and saved as CSV. Rows may have an action. */
import { useSignal } from "@preact/signals";
import { count, duration } from "./format";
import { inWords } from "./words";

export interface Column<T> {
    title: string;
    value: (row: T) => string | number;
    /* Unit of the value: nanoseconds, a plain number, or text if missing. */
    unit?: "ns" | "number";
    /* The displayed text, if the unit does not determine it. */
    text?: (row: T) => string;
}

export function download(name: string, type: string, data: BlobPart): void {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([data], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function quote(value: string | number): string {
    const text = String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCsv<T>(columns: Column<T>[], rows: T[]): string {
    const lines = [
        columns.map((column) =>
            quote(inWords(column.title) + (column.unit === "ns" ? " (ns)" : "")),
        ),
    ];
    for (const row of rows) lines.push(columns.map((column) => quote(column.value(row))));
    return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

function show(column: Column<never>, value: string | number): string {
    if (typeof value === "string") return value;
    return column.unit === "ns" ? duration(value) : count(value);
}

const STEP = 200;

export function Table<T>(props: {
    name: string;
    columns: Column<T>[];
    rows: T[];
    sort?: string;
    onRow?: (row: T) => void;
    /* Shows the critical path of a row: each row then has a button for it. */
    onWhy?: (row: T) => void;
    /* Whether a row is marked as one that needs attention. */
    mark?: (row: T) => boolean;
    empty: string;
}) {
    const by = useSignal(props.sort ?? "");
    const up = useSignal(false);
    const words = useSignal("");
    const shown = useSignal(STEP);
    const wanted = words.value.toLowerCase();
    const rows = props.rows.filter(
        (row) =>
            !wanted ||
            props.columns.some((column) =>
                String(column.value(row)).toLowerCase().includes(wanted),
            ),
    );
    const sorted = props.columns.find((column) => column.title === by.value);
    if (sorted) {
        const sign = up.value ? 1 : -1;
        rows.sort((a, b) => {
            const [x, y] = [sorted.value(a), sorted.value(b)];
            return (
                sign *
                (typeof x === "number" && typeof y === "number"
                    ? x - y
                    : String(x).localeCompare(String(y)))
            );
        });
    }
    if (props.rows.length === 0) return <p class="empty">{props.empty}</p>;
    return (
        <div class="table">
            <div class="tools">
                <input
                    type="search"
                    placeholder="filter rows"
                    aria-label={`Filter the rows of ${props.name}`}
                    value={words.value}
                    onInput={(event) => {
                        words.value = event.currentTarget.value;
                    }}
                />
                <span class="faint">
                    {count(rows.length)} of {count(props.rows.length)} rows
                </span>
                <button
                    type="button"
                    onClick={() =>
                        download(`${props.name}.csv`, "text/csv", toCsv(props.columns, rows))
                    }
                >
                    Save as CSV
                </button>
            </div>
            <table>
                <caption class="hidden">{props.name}</caption>
                <thead>
                    <tr>
                        {props.columns.map((column) => (
                            <th
                                key={column.title}
                                class={column.unit ? "number" : ""}
                                aria-sort={
                                    by.value !== column.title
                                        ? "none"
                                        : up.value
                                          ? "ascending"
                                          : "descending"
                                }
                            >
                                <button
                                    type="button"
                                    onClick={() => {
                                        up.value =
                                            by.value === column.title ? !up.value : !column.unit;
                                        by.value = column.title;
                                    }}
                                >
                                    {inWords(column.title)}
                                    {by.value === column.title ? (up.value ? " ▲" : " ▼") : ""}
                                </button>
                            </th>
                        ))}
                        {props.onWhy && <th>critical path</th>}
                    </tr>
                </thead>
                <tbody>
                    {rows.slice(0, shown.value).map((row, i) => (
                        <tr
                            key={i}
                            class={`${props.onRow ? "link" : ""}${props.mark?.(row) ? " marked" : ""}`}
                            tabIndex={props.onRow ? 0 : undefined}
                            onClick={() => props.onRow?.(row)}
                            onKeyDown={(event) => {
                                if (event.key === "Enter") props.onRow?.(row);
                            }}
                        >
                            {props.columns.map((column) => {
                                const value = column.value(row);
                                return (
                                    <td
                                        key={column.title}
                                        class={column.unit ? "number" : ""}
                                        title={String(value)}
                                    >
                                        {column.text?.(row) ?? show(column as Column<never>, value)}
                                    </td>
                                );
                            })}
                            {props.onWhy && (
                                <td>
                                    <button
                                        type="button"
                                        class="textlink"
                                        onClick={(event) => {
                                            event.stopPropagation();
                                            props.onWhy?.(row);
                                        }}
                                    >
                                        Why?
                                    </button>
                                </td>
                            )}
                        </tr>
                    ))}
                </tbody>
            </table>
            {rows.length > shown.value && (
                <button
                    type="button"
                    onClick={() => {
                        shown.value += 5 * STEP;
                    }}
                >
                    Show more
                </button>
            )}
        </div>
    );
}
