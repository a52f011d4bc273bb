/*
 * Draws the part above the lanes: the overview of the whole trace, and, in the window's scale, the ruler, the number
 * of goroutines by state, the heap, and the phases of the garbage collector.
 */
import type { Metrics } from "./api";
import { css, type Palette, stateColors } from "./colors";
import { drawSqlTrack, sqlHeight, sqlLabels } from "./draw_sql";
import { metrics, ranges, wholeMetrics } from "./extras";
import { bytes } from "./format";
import { type Box, LABELS, scale } from "./geometry";
import { ticks } from "./ruler";
import { end, origin, type Range, range, view } from "./state";

export const MAP_HEIGHT = 36;
const RULER = 22;
const COUNTERS = 44;
const HEAP = 26;
const PHASES = 12;

type Context = CanvasRenderingContext2D;

export function headHeight(): number {
    const own = RULER + COUNTERS + (hasHeap() ? HEAP : 0) + (hasPhases() ? PHASES : 0);
    return own + sqlHeight() + 2;
}

function heapOf(of: Metrics | null) {
    const heap = of?.metrics.heap ?? of?.metrics["heap objects"] ?? null;
    return heap?.max.some((value) => value > 0) ? heap : null;
}

function hasHeap(): boolean {
    return heapOf(wholeMetrics.value.value) !== null;
}

function hasPhases(): boolean {
    return (ranges.value.value?.length ?? 0) > 0;
}

/* MARK: Area charts */

const order: [string, number][] = [
    ["running", 2],
    ["syscall", 4],
    ["runnable", 1],
];

/* Running below, ready above it: their sum is the demand for CPUs. */
function drawCounters(to: Context, of: Metrics, box: Box, at: (ns: number) => number): number {
    const columns = of.columns;
    const sums = new Float64Array(columns);
    for (const [name] of order)
        (of.counters[name] ?? []).forEach((value, i) => {
            sums[i] += value;
        });
    const most = Math.max(1, ...sums);
    const low = new Float64Array(columns);
    const step = (of.to - of.from) / columns;
    for (const [name, state] of order) {
        const values = of.counters[name];
        if (!values) continue;
        to.fillStyle = css(stateColors[state]);
        to.beginPath();
        for (let i = 0; i < columns; i++) {
            const high = low[i] + values[i];
            const y0 = box.y + box.height * (1 - low[i] / most);
            const y1 = box.y + box.height * (1 - high / most);
            const x = at(of.from + i * step);
            to.rect(x, y1, at(of.from + (i + 1) * step) - x + 0.3, y0 - y1);
            low[i] = high;
        }
        to.fill();
    }
    return most;
}

function line(
    to: Context,
    values: number[],
    of: Metrics,
    box: Box,
    most: number,
    x: (ns: number) => number,
) {
    const step = (of.to - of.from) / of.columns;
    to.beginPath();
    values.forEach((value, i) => {
        const y = box.y + box.height * (1 - value / most);
        to.lineTo(x(of.from + i * step), y);
        to.lineTo(x(of.from + (i + 1) * step), y);
    });
}

function drawHeap(
    to: Context,
    of: Metrics,
    box: Box,
    x: (ns: number) => number,
    colors: Palette,
): number {
    const heap = heapOf(of);
    const goal = of.metrics.goal ?? of.metrics["heap goal"];
    if (!heap) return 0;
    const most = Math.max(1, ...heap.max, ...(goal?.max ?? []));
    line(to, heap.max, of, box, most, x);
    to.lineTo(x(of.to), box.y + box.height);
    to.lineTo(x(of.from), box.y + box.height);
    to.fillStyle = colors.dark ? "#35506b" : "#bcd3ec";
    to.fill();
    if (goal) {
        line(to, goal.max, of, box, most, x);
        to.strokeStyle = colors.faint;
        to.lineWidth = 1;
        to.stroke();
    }
    return most;
}

/* Marks columns in which only one goroutine runs although there are several Ps, and none is ready. */
function drawAlone(to: Context, of: Metrics, y: number, x: (ns: number) => number): void {
    const step = (of.to - of.from) / of.columns;
    to.fillStyle = "#d05a30";
    for (let i = 0; i < of.columns; i++) {
        const working = (of.counters.running?.[i] ?? 0) + (of.counters.syscall?.[i] ?? 0);
        const ready = of.counters.runnable?.[i] ?? 0;
        const procs = of.metrics.gomaxprocs?.max[i] ?? 0;
        if (working > 0.9 && working < 1.1 && ready < 0.1 && procs > 1)
            to.fillRect(
                x(of.from + i * step),
                y,
                x(of.from + (i + 1) * step) - x(of.from + i * step) + 0.3,
                3,
            );
    }
}

/*
 * Shades the columns of the metrics by a share of their time: what fills a tenth of a pixel has a tenth of the colour,
 * so that many short pauses do not look like one long one.
 */
export function drawShares(
    to: Context,
    name: "stopped" | "marking",
    box: Box,
    x: (ns: number) => number,
    [red, green, blue, alpha]: number[],
): void {
    const of = metrics.value.value;
    const shares = of?.shares?.[name];
    if (!of || !shares) return;
    const step = (of.to - of.from) / of.columns;
    shares.forEach((share, i) => {
        const left = Math.max(x(of.from + i * step), box.x);
        const right = Math.min(x(of.from + (i + 1) * step), box.x + box.width);
        if (share <= 0 || right <= left) return;
        to.fillStyle = `rgba(${red},${green},${blue},${alpha * share})`;
        to.fillRect(left, box.y, right - left, box.height);
    });
}

function drawPhases(
    to: Context,
    y: number,
    width: number,
    x: (ns: number) => number,
    colors: Palette,
): void {
    const box = { x: LABELS, y, width, height: PHASES - 3 };
    drawShares(to, "marking", box, x, colors.dark ? [122, 106, 47, 1] : [220, 198, 95, 1]);
    drawShares(to, "stopped", box, x, [194, 52, 44, 1]);
}

function label(to: Context, text: string, y: number, colors: Palette): void {
    to.fillStyle = colors.faint;
    to.fillText(text, 8, y, LABELS - 14);
}

export function drawHead(to: Context, width: number, colors: Palette): void {
    const window = view.value;
    const inner = width - LABELS;
    const x = scale(window.from, window.to, width);
    to.fillStyle = colors.raised;
    to.fillRect(0, 0, width, headHeight());
    to.font = "11px system-ui, sans-serif";
    to.textBaseline = "middle";
    to.save();
    to.beginPath();
    to.rect(LABELS, 0, inner, headHeight());
    to.clip();
    for (const tick of ticks(window, inner)) {
        to.fillStyle = colors.line;
        to.fillRect(Math.round(x(tick.at)), 0, 1, headHeight());
        to.fillStyle = colors.text;
        to.fillText(tick.text, x(tick.at) + 4, RULER / 2);
    }
    let y = RULER;
    const now = metrics.value.value;
    let most = 0;
    let heapMost = 0;
    if (now) {
        most = drawCounters(
            to,
            now,
            { x: LABELS, y: y + 4, width: inner, height: COUNTERS - 6 },
            x,
        );
        drawAlone(to, now, y, x);
    }
    y += COUNTERS;
    if (hasHeap() && now) {
        heapMost = drawHeap(
            to,
            now,
            { x: LABELS, y: y + 2, width: inner, height: HEAP - 4 },
            x,
            colors,
        );
        y += HEAP;
    }
    if (hasPhases()) {
        drawPhases(to, y, inner, x, colors);
        y += PHASES;
    }
    drawSqlTrack(to, x, y, inner, colors);
    const zero = x(origin.value);
    if (origin.value && zero > LABELS) {
        to.fillStyle = colors.accent;
        to.fillRect(Math.round(zero) - 1, 0, 2, RULER);
    }
    drawRange(to, x, { y: 0, height: headHeight() }, colors);
    to.restore();
    label(
        to,
        `running, ready (up to ${Number(most.toPrecision(3))})`,
        RULER + COUNTERS / 2,
        colors,
    );
    y = RULER + COUNTERS;
    if (hasHeap()) {
        label(to, `heap, goal (${bytes(heapMost)})`, y + HEAP / 2, colors);
        y += HEAP;
    }
    if (hasPhases()) {
        label(to, "GC, stop-the-world", y + PHASES / 2 - 1, colors);
        y += PHASES;
    }
    for (const of of sqlLabels(y)) label(to, of.text, of.y, colors);
}

/* Draws the selected range, from one height to another. */
export function drawRange(
    to: Context,
    x: (ns: number) => number,
    box: { y: number; height: number },
    colors: Palette,
): void {
    const now: Range | null = range.value;
    if (!now) return;
    const left = x(now.from);
    const right = x(now.to);
    to.fillStyle = colors.dark ? "rgba(125,184,255,0.16)" : "rgba(11,95,192,0.10)";
    to.fillRect(left, box.y, right - left, box.height);
    to.fillStyle = colors.accent;
    to.fillRect(left, box.y, 1, box.height);
    to.fillRect(right, box.y, 1, box.height);
}

/* MARK: Overview */

export function drawMap(to: Context, width: number, colors: Palette): void {
    const whole = end.value;
    const x = scale(0, whole, width);
    to.fillStyle = colors.background;
    to.fillRect(0, 0, width, MAP_HEIGHT);
    const now = wholeMetrics.value.value;
    if (now)
        drawCounters(
            to,
            now,
            { x: LABELS, y: 3, width: width - LABELS, height: MAP_HEIGHT - 6 },
            x,
        );
    const { from, to: until } = view.value;
    const left = Math.max(x(from), LABELS);
    const right = Math.min(Math.max(x(until), left + 2), width);
    to.fillStyle = colors.dark ? "rgba(10,14,18,0.62)" : "rgba(200,208,216,0.62)";
    to.fillRect(LABELS, 0, left - LABELS, MAP_HEIGHT);
    to.fillRect(right, 0, width - right, MAP_HEIGHT);
    to.strokeStyle = colors.accent;
    to.lineWidth = 2;
    to.strokeRect(left, 1, right - left, MAP_HEIGHT - 2);
    to.font = "11px system-ui, sans-serif";
    to.textBaseline = "middle";
    label(to, "whole trace", MAP_HEIGHT / 2, colors);
}
