/*
 * A heat map of Ps: one row per P, one column per time slice of the selected range. The colour is the share of the
 * slice in which the P ran a goroutine, computed from the lanes' pictures.
 */
import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { api, RUNNING } from "./api";
import { font, heatColor, palette } from "./colors";
import { duration, withSign } from "./format";
import { reveal } from "./lanes";
import { ticks, timeText } from "./ruler";
import { selectAt } from "./select";
import { end, kind, type Range, range, scroll, showRange, status } from "./state";
import { summary } from "./summary";
import { inWords, term } from "./words";

/* Position of the cells, in CSS pixels: right of the Ps' names, below the times. */
const LEFT = 48;
const TOP = 18;
const CELL_WIDTH = 4;
/* The API's limit of lanes per request. */
const MOST_PROCS = 2048;

interface HeatRow {
    lane: number;
    id: number;
    /* By column, 0 to 1. */
    shares: Float32Array;
}

interface Heat extends Range {
    columns: number;
    /* Sorted by the Ps' numbers. */
    rows: HeatRow[];
}

const CELL_BYTES = 16;

/* The share of running time per column, from the `count` cells of a picture at offset `at` (docs/http-api.md). */
function sharesOf(data: DataView, at: number, count: number, columns: number): Float32Array {
    const shares = new Float32Array(columns);
    for (let i = 0; i < count; i++, at += CELL_BYTES) {
        const x = data.getUint16(at, true);
        const share = data.getUint8(at + 5 + RUNNING) / 255;
        shares.fill(share, x, x + data.getUint16(at + 2, true));
    }
    return shares;
}

async function askHeat(of: Range, columns: number, procs: number): Promise<Heat> {
    const wanted = Array.from({ length: Math.min(procs, MOST_PROCS) }, (_, lane) => lane);
    const [picture, lanes] = await Promise.all([
        api.picture("proc", wanted, of.from, of.to, columns),
        api.lanes("proc", 0),
    ]);
    const data = new DataView(picture);
    const rows: HeatRow[] = [];
    for (let at = 0; at + 8 <= data.byteLength; ) {
        const lane = data.getUint32(at, true);
        const count = data.getUint32(at + 4, true);
        const id = lanes.rows[lane]?.[1] ?? lane;
        rows.push({ lane, id, shares: sharesOf(data, at + 8, count, columns) });
        at += 8 + count * CELL_BYTES;
    }
    rows.sort((a, b) => a.id - b.id);
    return { ...of, columns, rows };
}

function column(of: Heat, x: number): Range {
    const edge = (i: number) => of.from + Math.floor(((of.to - of.from) * i) / of.columns);
    return { from: edge(x), to: Math.max(edge(x + 1), edge(x) + 1) };
}

/* Indices of a row and a column. */
interface Cell {
    row: number;
    x: number;
}

function goTo(of: Heat, cell: Cell): void {
    const { from, to } = column(of, cell.x);
    const { lane } = of.rows[cell.row];
    kind.value = "proc";
    scroll.value = 0;
    showRange({ from, to });
    void selectAt("proc", lane, (from + to) / 2, false).then(() => reveal(lane));
}

function rowHeight(rows: number): number {
    return Math.max(6, Math.min(22, Math.floor(160 / Math.max(rows, 1))));
}

function draw(canvas: HTMLCanvasElement, of: Heat, at: Cell | null): void {
    const colors = palette.value;
    const ratio = devicePixelRatio;
    const high = rowHeight(of.rows.length);
    const width = LEFT + of.columns * CELL_WIDTH;
    const height = TOP + of.rows.length * high;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const to = canvas.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    to.setTransform(ratio, 0, 0, ratio, 0, 0);
    to.fillStyle = colors.background;
    to.fillRect(0, 0, width, height);
    to.font = font("t-11");
    to.textBaseline = "middle";
    to.fillStyle = colors.faint;
    for (const tick of ticks(of, width - LEFT)) {
        const x = LEFT + ((tick.at - of.from) / (of.to - of.from)) * (width - LEFT);
        to.fillRect(Math.round(x), 0, 1, TOP);
        if (x + 3 + to.measureText(tick.text).width <= width)
            to.fillText(tick.text, x + 3, TOP / 2);
    }
    of.rows.forEach(({ id, shares }, row) => {
        const y = TOP + row * high;
        to.fillStyle = colors.text;
        if (high >= 10 || row % 2 === 0) to.fillText(`${term("slot_short")}${id}`, 4, y + high / 2);
        shares.forEach((share, x) => {
            to.fillStyle = heatColor(share, colors.dark);
            to.fillRect(LEFT + x * CELL_WIDTH, y, CELL_WIDTH, high - 1);
        });
    });
    if (!at) return;
    to.strokeStyle = colors.text;
    to.lineWidth = 2;
    to.strokeRect(LEFT + at.x * CELL_WIDTH - 1, TOP + at.row * high - 1, CELL_WIDTH + 2, high + 1);
}

function cellAt(of: Heat, x: number, y: number): Cell | null {
    const cell = {
        row: Math.floor((y - TOP) / rowHeight(of.rows.length)),
        x: Math.floor((x - LEFT) / CELL_WIDTH),
    };
    const isThere = cell.x >= 0 && cell.x < of.columns && cell.row >= 0;
    return isThere && cell.row < of.rows.length ? cell : null;
}

const arrows: Record<string, [number, number]> = {
    ArrowLeft: [-1, 0],
    ArrowRight: [1, 0],
    ArrowUp: [0, -1],
    ArrowDown: [0, 1],
};

function moved(of: Heat, from: Cell | null, [dx, dy]: [number, number]): Cell {
    const inside = (value: number, count: number) => Math.max(0, Math.min(value, count - 1));
    if (!from) return { row: 0, x: 0 };
    return {
        row: inside(from.row + dy, of.rows.length),
        x: inside(from.x + dx, of.columns),
    };
}

function cellText(of: Heat, cell: Cell): string {
    const { from, to } = column(of, cell.x);
    const step = (of.to - of.from) / of.columns;
    const { id, shares } = of.rows[cell.row];
    return (
        `${term("slot_short")}${id} from ${timeText(from, step)} to ${timeText(to, step)}: ` +
        `${(100 * shares[cell.x]).toFixed(0)} % running`
    );
}

const STEPS = [0, 0.25, 0.5, 0.75, 1];

function HeatLegend() {
    const { dark } = palette.value;
    return (
        <p class="heatlegend">
            {inWords("running a {task}:")}{" "}
            {STEPS.map((share) => (
                <span key={share}>
                    <i class="swatch" style={{ background: heatColor(share, dark) }} />{" "}
                    {100 * share} %
                </span>
            ))}
        </p>
    );
}

/* As many columns as fit, but none shorter than a nanosecond. */
function columnsOf(of: Range, width: number): number {
    const room = Math.floor((width - LEFT) / CELL_WIDTH);
    return Math.max(1, Math.min(room, of.to - of.from));
}

/* How much of the time they were idle, and why. */
function Idle() {
    const tile = summary.value?.tiles.find(({ key }) => key === "idle_ns");
    return tile?.note ? (
        <p>
            {tile.title} {withSign(tile.text)}: {withSign(tile.note)}.
        </p>
    ) : null;
}

export function HeatPanel() {
    const heat = useSignal<Heat | null>(null);
    const at = useSignal<Cell | null>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const box = useRef<HTMLDivElement>(null);
    /* What the selection beside it leaves; 0: not known yet. */
    const width = useSignal(0);
    useEffect(() => {
        const observer = new ResizeObserver(([{ contentRect }]) => {
            width.value = contentRect.width;
        });
        if (box.current) observer.observe(box.current);
        return () => observer.disconnect();
    }, [width]);
    const wanted = useComputed(() => {
        const { from, to } = range.value ?? { from: 0, to: end.value };
        return { from: Math.round(from), to: Math.max(Math.round(to), Math.round(from) + 1) };
    });
    const columns = useComputed(() => columnsOf(wanted.value, width.value));
    const procs = useComputed(() => status.value?.procs ?? 0);
    useSignalEffect(() => {
        const of = wanted.value;
        if (procs.value === 0 || width.value === 0) return;
        let isOld = false;
        askHeat(of, columns.value, procs.value)
            .then((found) => {
                if (isOld) return;
                at.value = null;
                heat.value = found;
            })
            .catch(() => {
                /* The last answer remains; the next change requests again. */
            });
        return () => {
            isOld = true;
        };
    });
    const of = heat.value;
    const colors = palette.value;
    useEffect(() => {
        if (canvas.current && of) draw(canvas.current, of, at.value);
    }, [of, at.value, colors]);
    if (!of)
        return (
            <div class="heat" ref={box}>
                <p class="empty">{inWords("No {slot} read yet.")}</p>
            </div>
        );
    return (
        <div class="heat" ref={box}>
            <Idle />
            <HeatLegend />
            {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: it has keys of its own */}
            <canvas
                ref={canvas}
                role="application"
                aria-label={inWords(
                    "How busy each {slot} was; arrow keys move over it, Enter shows the place in the timeline",
                )}
                aria-describedby="heatcell"
                tabIndex={0}
                data-columns={of.columns}
                onPointerMove={(event) => {
                    at.value = cellAt(of, event.offsetX, event.offsetY);
                }}
                onClick={(event) => {
                    const cell = cellAt(of, event.offsetX, event.offsetY);
                    if (cell) goTo(of, cell);
                }}
                onKeyDown={(event) => {
                    const by = arrows[event.key];
                    if (by) at.value = moved(of, at.value, by);
                    else if (event.key === "Enter" && at.value) goTo(of, at.value);
                    else return;
                    event.preventDefault();
                    event.stopPropagation();
                }}
            />
            <p id="heatcell" aria-live="polite">
                {at.value
                    ? cellText(of, at.value)
                    : `${of.rows.length} ${term(of.rows.length === 1 ? "slot" : "slots")}, ${of.columns} intervals of ${duration((of.to - of.from) / of.columns)}; ` +
                      "a click shows the place in the timeline."}
            </p>
        </div>
    );
}
