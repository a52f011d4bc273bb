/*
 * Draws the part above the lanes: the overview of the whole trace, and, in the window's scale, the ruler, the number
 * of goroutines by state, the heap, and the phases of the garbage collector.
 */
import type { DrawChart } from "./charts";
import { font, measure, type Palette } from "./colors";
import { drawSqlTrack, sqlHeight, sqlLabels } from "./draw_sql";
import { metrics, wholeMetrics } from "./extras";
import { bytes, duration } from "./format";
import { type Box, LABELS, scale } from "./geometry";
import { HEAP_HEIGHT, heapOf, type MetricCharts, metricCharts } from "./metric_charts";
import { ticks, timeText } from "./ruler";
import { end, charts as open, origin, type Range, range, status, view } from "./state";
import { type Finding, keyOf, shown, summary } from "./summary";

export const MAP_HEIGHT = measure("overview");
const RULER = measure("ruler");
const COUNTERS = 44;
const HEAP = HEAP_HEIGHT + 4;
const PHASES = 12;
/* Height of the bar of a finding, and half the width of its mark. */
const BAR = 3;
const MARK = 4;

type Context = CanvasRenderingContext2D;

export function headHeight(): number {
    const own =
        RULER + (open.value ? COUNTERS : 0) + (hasHeap() ? HEAP : 0) + (hasPhases() ? PHASES : 0);
    return own + sqlHeight() + 2;
}

function hasHeap(): boolean {
    return open.value && heapOf(wholeMetrics.value.value) !== null;
}

function hasPhases(): boolean {
    return (status.value?.bars?.ranges ?? 0) > 0;
}

function label(to: Context, text: string, y: number, colors: Palette): void {
    to.fillStyle = colors.faint;
    to.fillText(text, 8, y, LABELS - 14);
}

/* Everything drawn in the window's scale. */
interface Head {
    to: Context;
    x: (ns: number) => number;
    width: number;
    colors: Palette;
    charts: MetricCharts | null;
    chart: DrawChart;
}

function drawRuler({ to, x, width, colors }: Head): void {
    for (const tick of ticks(view.value, width)) {
        to.fillStyle = colors.line;
        to.fillRect(Math.round(x(tick.at)), 0, 1, headHeight());
        /* A text that would be cut is left out. */
        if (x(tick.at) + 4 + to.measureText(tick.text).width > LABELS + width) continue;
        to.fillStyle = colors.text;
        to.fillText(tick.text, x(tick.at) + 4, RULER / 2);
    }
}

/* The time of a finding since the first event; null: it has none. */
function timeOf({ begin_ns, end_ns }: Finding): Range | null {
    const first = summary.peek()?.origin_ns;
    if (first === undefined || begin_ns === undefined || end_ns === undefined) return null;
    return { from: begin_ns - first, to: end_ns - first };
}

/* A bar below the ruler where the finding that is shown has its worst case. */
function drawShown({ to, x, colors }: Head): void {
    const at = shown.value && timeOf(shown.value);
    if (!at) return;
    const left = x(at.from);
    to.fillStyle = colors.warn;
    to.fillRect(left, RULER - BAR, Math.max(x(at.to) - left, 2), BAR);
}

/* The charts below each other, from `y` on. Returns their end. */
function drawCharts({ to, width, charts, chart }: Head, y: number): number {
    const window = view.value;
    const isOpen = open.value;
    const at = (top: number, height: number): Box => ({ x: LABELS, y: top, width, height });
    let top = y;
    if (charts && isOpen) {
        chart(to, charts.counters, window, at(top + 4, COUNTERS - 6));
        chart(to, charts.alone, window, at(top, 3));
    }
    if (isOpen) top += COUNTERS;
    if (hasHeap()) {
        if (charts?.heap) chart(to, charts.heap, window, at(top + 2, HEAP_HEIGHT));
        top += HEAP;
    }
    if (hasPhases()) {
        if (charts) chart(to, charts.marking, window, at(top, PHASES - 3));
        if (charts) chart(to, charts.stopped, window, at(top, PHASES - 3));
        top += PHASES;
    }
    return top;
}

/* "688 ms – 972 ms" */
function windowText(): string {
    const { from, to } = view.value;
    const step = (to - from) / 100;
    return `${timeText(from, step)} – ${timeText(to, step)}`;
}

function drawLabels({ to, colors, charts }: Head): void {
    let y = RULER;
    const most = Number((charts?.most ?? 0).toPrecision(3));
    label(to, windowText(), RULER / 2, colors);
    if (open.value) {
        label(to, `running, ready (up to ${most})`, y + COUNTERS / 2, colors);
        y += COUNTERS;
    }
    if (hasHeap()) {
        label(to, `heap, goal (${bytes(charts?.heapMost ?? 0)})`, y + HEAP / 2, colors);
        y += HEAP;
    }
    if (hasPhases()) {
        label(to, "GC, stop-the-world", y + PHASES / 2 - 1, colors);
        y += PHASES;
    }
    for (const of of sqlLabels(y)) label(to, of.text, of.y, colors);
}

export function drawHead(to: Context, width: number, colors: Palette, chart: DrawChart): void {
    const inner = width - LABELS;
    const x = scale(view.value.from, view.value.to, width);
    const now = metrics.value.value;
    const charts = now && metricCharts(now, colors);
    const head: Head = { to, x, width: inner, colors, charts, chart };
    to.fillStyle = colors.chrome;
    to.fillRect(0, 0, width, headHeight());
    to.font = font("t-11");
    to.textBaseline = "middle";
    to.save();
    to.beginPath();
    to.rect(LABELS, 0, inner, headHeight());
    to.clip();
    drawRuler(head);
    drawShown(head);
    drawSqlTrack(to, x, drawCharts(head, RULER), inner, colors);
    const zero = x(origin.value);
    if (origin.value && zero > LABELS) {
        to.fillStyle = colors.accent;
        to.fillRect(Math.round(zero) - 1, 0, 2, RULER);
    }
    drawRange(to, x, { y: 0, height: headHeight() }, colors);
    to.restore();
    drawLabels(head);
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
    to.fillStyle = colors.get("range");
    to.fillRect(left, box.y, right - left, box.height);
    to.fillStyle = colors.accent;
    to.fillRect(left, box.y, 1, box.height);
    to.fillRect(right, box.y, 1, box.height);
}

/* MARK: Overview */

/* Marks the worst case of each finding; the mark of the selected finding stands out. */
function drawFindings(to: Context, x: (ns: number) => number, colors: Palette): void {
    const isShown = (of: Finding) => shown.value !== null && keyOf(of) === keyOf(shown.value);
    for (const of of summary.value?.findings ?? []) {
        const at = timeOf(of);
        if (!at) continue;
        const middle = Math.max(x((at.from + at.to) / 2), LABELS + MARK);
        to.fillStyle = isShown(of) ? colors.warn : colors.get("sev-mid");
        to.beginPath();
        to.moveTo(middle - MARK, 0);
        to.lineTo(middle + MARK, 0);
        to.lineTo(middle, MARK + 2);
        to.fill();
    }
}

export function drawMap(to: Context, width: number, colors: Palette, chart: DrawChart): void {
    const whole = end.value;
    const x = scale(0, whole, width);
    to.fillStyle = colors.background;
    to.fillRect(0, 0, width, MAP_HEIGHT);
    const now = wholeMetrics.value.value;
    const box = { x: LABELS, y: 3, width: width - LABELS, height: MAP_HEIGHT - 6 };
    if (now) chart(to, metricCharts(now, colors).counters, { from: 0, to: whole }, box);
    const { from, to: until } = view.value;
    const left = Math.max(x(from), LABELS);
    const right = Math.min(Math.max(x(until), left + 2), width);
    to.fillStyle = colors.get("outside");
    to.fillRect(LABELS, 0, left - LABELS, MAP_HEIGHT);
    to.fillRect(right, 0, width - right, MAP_HEIGHT);
    drawFindings(to, x, colors);
    to.strokeStyle = colors.accent;
    to.lineWidth = 2;
    to.strokeRect(left, 1, right - left, MAP_HEIGHT - 2);
    to.font = font("t-11");
    to.textBaseline = "middle";
    label(to, `Whole trace, ${duration(whole)}`, MAP_HEIGHT / 2, colors);
}
