/*
 * A table that can be sorted by column, filtered, and saved as CSV, with columns whose widths can be changed. Rows may have
 * an action.
 */
import { type Signal, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { copyText } from "./clipboard";
import { font } from "./colors";
import { bytes, count, duration } from "./format";
import { type Item, isMenuKey, openMenu } from "./menu";
import { isPhone } from "./state";
import { inWords } from "./words";

export interface Column<T> {
    title: string;
    value: (row: T) => string | number;
    /* Unit of the value: nanoseconds, bytes, a plain number, the number of a thing, or text if missing. */
    unit?: "ns" | "bytes" | "number" | "id";
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
        columns.map(({ title, unit }) =>
            quote(inWords(title) + (unit === "ns" || unit === "bytes" ? ` (${unit})` : "")),
        ),
    ];
    for (const row of rows) lines.push(columns.map((column) => quote(column.value(row))));
    return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

function show(column: Column<never>, value: string | number): string {
    if (typeof value === "string" || column.unit === "id") return String(value);
    if (column.unit === "bytes") return bytes(value);
    return column.unit === "ns" && value !== 0 ? duration(value) : count(value);
}

/* The value without rounding: "78,437,211 ns"; what has no unit, as it is shown. */
function exactly({ unit }: Column<never>, value: string | number, text: string): string {
    const sign = { ns: "ns", bytes: "B" }[unit as string];
    return sign && value ? `${count(value as number)} ${sign}` : text;
}

/* The greatest width of a cell, in widths of a digit, as in app.css; its padding, in pixels; and how many characters of
 * the end are kept. */
const mostDigits = () => (isPhone() ? 32 : 48);
const PADDING = 16;
const TAIL = 20;

const ruler = document.createElement("canvas").getContext("2d") as CanvasRenderingContext2D;

function widthOf(text: string): number {
    ruler.font = font("t-12");
    return ruler.measureText(text).width;
}

/* A text in two parts, of which the first is shortened where both have no room. */
export function endsOf(text: string): [string, string] {
    const characters = [...text];
    return [characters.slice(0, -TAIL).join(""), characters.slice(-TAIL).join("")];
}

/* A text that is wider than its cell is shortened in the middle, since names differ at their ends. `room`: the width of
 * the column, if the user has chosen it. */
function Shown(props: { text: string; room?: number }) {
    const { text } = props;
    if (text.length <= TAIL) return text;
    const room = (props.room ?? mostDigits() * widthOf("0")) - PADDING;
    if (widthOf(text) <= room) return text;
    const [head, tail] = endsOf(text);
    return (
        <span class="shortened">
            <span style={`max-width: calc(100% - ${Math.ceil(widthOf(tail))}px)`}>{head}</span>
            <span>{tail}</span>
        </span>
    );
}

/* MARK: Widths of columns */

/* In pixels, by number of the column; null: each column is as wide as its texts. */
type Widths = Signal<number[] | null>;

const LEAST_WIDTH = 40;
const WIDER = 20;

function widthsOf(head: HTMLTableRowElement): number[] {
    return [...head.cells].map((cell) => cell.offsetWidth);
}

function setWidth(widths: Widths, head: HTMLTableRowElement, i: number, width: number): void {
    const all = [...(widths.peek() ?? widthsOf(head))];
    all[i] = Math.max(LEAST_WIDTH, Math.round(width));
    widths.value = all;
}

/* The right edge of a column's head. The keys for it are those of the head. */
function Edge(props: { widths: Widths; column: number }) {
    const from = useRef({ x: 0, width: 0 });
    return (
        <span
            class="edge"
            aria-hidden="true"
            onPointerDown={(event) => {
                const cell = event.currentTarget.parentElement as HTMLElement;
                from.current = { x: event.clientX, width: cell.offsetWidth };
                event.currentTarget.setPointerCapture(event.pointerId);
            }}
            onPointerMove={(event) => {
                const head = event.currentTarget.closest("tr");
                if (!head || !event.buttons) return;
                const width = from.current.width + event.clientX - from.current.x;
                setWidth(props.widths, head, props.column, width);
            }}
            onDblClick={() => {
                props.widths.value = null;
            }}
        />
    );
}

/* Shift and an arrow key change the width of the head's column. */
function onHeadKey(event: KeyboardEvent, widths: Widths, i: number): void {
    const step = event.key === "ArrowLeft" ? -WIDER : event.key === "ArrowRight" ? WIDER : 0;
    const cell = (event.currentTarget as HTMLElement).closest("th");
    const head = cell?.closest("tr");
    if (!event.shiftKey || step === 0 || !cell || !head) return;
    event.preventDefault();
    event.stopPropagation();
    setWidth(widths, head, i, cell.offsetWidth + step);
}

/* MARK: Menus */

function copy(text: string): Item["run"] {
    return () => void copyText(text, "Copied", `The browser refuses to copy: ${text}`);
}

/* The menu of a row; `cell` is the one under the pointer, if there is one. */
function openRowMenu(
    event: MouseEvent | KeyboardEvent,
    row: { run?: () => void; why?: () => void },
    words: Signal<string>,
): void {
    event.preventDefault();
    event.stopPropagation();
    const line = event.currentTarget as HTMLTableRowElement;
    const cell = (event.target as HTMLElement).closest("td");
    const texts = [...line.cells].filter((one) => one.title).map((one) => one.textContent ?? "");
    const places: Item[] = [];
    if (row.run) places.push({ text: "show it in the timeline", key: "Enter", run: row.run });
    if (row.why) places.push({ text: "show its critical path", run: row.why });
    const copies: Item[] = [{ text: "copy the row", run: copy(texts.join("\t")) }];
    if (cell?.title) {
        copies.unshift({ text: "copy the cell", run: copy(cell.textContent ?? "") });
        const text = cell.title;
        copies.push({
            text: "only rows with this text",
            run: () => {
                words.value = text;
            },
        });
    }
    const { left, bottom } = line.getBoundingClientRect();
    /* A key has no place of its own. */
    const isPointer = event instanceof MouseEvent && event.button === 2;
    const [x, y] = isPointer ? [event.clientX, event.clientY] : [left + 20, bottom];
    openMenu(x, y, texts[0] ?? "", [places, copies]);
}

/* MARK: The table */

const STEP = 200;

export function Table<T>(props: {
    name: string;
    columns: Column<T>[];
    rows: T[];
    /* The title of the column that it is sorted by at first, the greatest first unless `up`. */
    sort?: string;
    up?: boolean;
    /* The order of the rows until a column is chosen, if no column has it. */
    order?: string;
    onRow?: (row: T) => void;
    /* Shows the critical path of a row: each row then has a button for it. */
    onWhy?: (row: T) => void;
    /* The words of the filter, if the rows depend on them. */
    words?: Signal<string>;
    /* Called with the words of the filter, if they select the rows; otherwise the table does that. */
    onWords?: (words: string) => void;
    /* Whether a row is marked as one that needs attention. */
    mark?: (row: T) => boolean;
    /* Whether a row is the one that is shown in full. */
    isShown?: (row: T) => boolean;
    empty: string;
}) {
    /* Columns that have no text at all are left out. */
    const columns = props.columns.filter(
        ({ unit, value }) => unit || props.rows.some((row) => value(row) !== ""),
    );
    const by = useSignal(props.sort ?? "");
    const up = useSignal(props.up ?? false);
    const ownWords = useSignal("");
    const words = props.words ?? ownWords;
    const shown = useSignal(STEP);
    const widths: Widths = useSignal(null);
    const wanted = props.onWords ? "" : words.value.toLowerCase();
    const { onWords } = props;
    useSignalEffect(() => onWords?.(words.value));
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
                    : String(x).localeCompare(String(y), "en", { numeric: true }))
            );
        });
    }
    if (props.rows.length === 0 && !words.value) return <p class="empty">{props.empty}</p>;
    const openMenuOf = (event: MouseEvent | KeyboardEvent, row: T) => {
        const run = props.onRow && (() => props.onRow?.(row));
        const why = props.onWhy && (() => props.onWhy?.(row));
        openRowMenu(event, { run, why }, words);
    };
    return (
        <div class="table">
            <div class="tools">
                <input
                    type="search"
                    placeholder="Filter rows"
                    aria-label={`Filter the rows of ${props.name}`}
                    value={words.value}
                    onInput={(event) => {
                        words.value = event.currentTarget.value;
                    }}
                />
                <span class="faint">
                    {rows.length < props.rows.length && `${count(rows.length)} of `}
                    {count(props.rows.length)} {props.rows.length === 1 ? "row" : "rows"}
                    {props.order && !sorted && props.rows.length > 1 && `, ${props.order}`}
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
            <table
                class={widths.value ? "fixed" : ""}
                style={
                    widths.value
                        ? { width: `${widths.value.reduce((a, b) => a + b, 0)}px` }
                        : undefined
                }
            >
                <caption class="hidden">{props.name}</caption>
                <thead>
                    <tr>
                        {columns.map((column, i) => (
                            <th
                                key={column.title}
                                class={column.unit ? "number" : ""}
                                style={widths.value ? { width: `${widths.value[i]}px` } : undefined}
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
                                    title="Sorts by this column. Shift and ← or → change its width."
                                    onKeyDown={(event) => onHeadKey(event, widths, i)}
                                    onClick={() => {
                                        up.value =
                                            by.value === column.title ? !up.value : !column.unit;
                                        by.value = column.title;
                                    }}
                                >
                                    {inWords(column.title)}
                                    {by.value === column.title ? (up.value ? " ▲" : " ▼") : ""}
                                </button>
                                <Edge widths={widths} column={i} />
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
                            aria-current={props.isShown?.(row) ? "true" : undefined}
                            tabIndex={props.onRow ? 0 : undefined}
                            onClick={() => props.onRow?.(row)}
                            onKeyDown={(event) => {
                                if (event.key === "Enter") props.onRow?.(row);
                                else if (isMenuKey(event)) openMenuOf(event, row);
                            }}
                            onContextMenu={(event) => openMenuOf(event, row)}
                        >
                            {columns.map((column, i) => {
                                const value = column.value(row);
                                const text =
                                    column.text?.(row) ?? show(column as Column<never>, value);
                                return (
                                    <td
                                        key={column.title}
                                        class={column.unit ? "number" : ""}
                                        title={exactly(column as Column<never>, value, text)}
                                        data-value={value}
                                    >
                                        <Shown room={widths.value?.[i]} text={text} />
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
