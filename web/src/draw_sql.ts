/* Draws rows of SQL (sql_track.ts): a strip and a counter above the lanes, and the rows on a lane. */
import type { Palette } from "./colors";
import { count, duration } from "./format";
import { type Box, LABELS } from "./geometry";
import { counter, type Placed, placed } from "./sql_track";

type Context = CanvasRenderingContext2D;

const STRIP = 12;
const COUNTER = 30;

export function sqlHeight(): number {
    return (placed.value ? STRIP : 0) + (counter.value ? COUNTER : 0);
}

function colorOf(colors: Palette): string {
    return colors.get("sql");
}

/* Calls `draw` for the rows that are visible in the box; once for several within one pixel. */
function eachSeen(
    rows: readonly Placed[],
    x: (ns: number) => number,
    box: Box,
    draw: (left: number, right: number) => void,
): void {
    let done = box.x - 1;
    for (const { from, to } of rows) {
        const left = Math.max(x(from), box.x);
        if (left > box.x + box.width) break;
        const right = Math.min(Math.max(x(to), left + 1), box.x + box.width);
        if (right <= done + 0.5 || right <= box.x) continue;
        draw(left, right);
        done = Math.max(done, right);
    }
}

/* Rows on their lane: a line above and below the states, which stay visible. */
export function drawPlaced(
    to: Context,
    rows: readonly Placed[],
    x: (ns: number) => number,
    box: Box,
    colors: Palette,
): void {
    to.fillStyle = colorOf(colors);
    eachSeen(rows, x, box, (left, right) => {
        to.fillRect(left, box.y, right - left, 2);
        to.fillRect(left, box.y + box.height - 2, right - left, 2);
        if (right - left < 3) to.fillRect(left, box.y, right - left, box.height);
    });
}

/* A line in steps. Values within half a pixel are one stroke. */
function drawCounter(to: Context, x: (ns: number) => number, box: Box, colors: Palette): void {
    const of = counter.value;
    if (!of) return;
    const scale = box.height / Math.max(of.most - of.least, 1e-9);
    const y = (value: number) => box.y + box.height - (value - of.least) * scale;
    to.strokeStyle = colorOf(colors);
    to.lineWidth = 1.5;
    to.beginPath();
    let last: { x: number; value: number } | null = null;
    for (const { at, value } of of.points) {
        const here = x(at);
        if (here > box.x + box.width) break;
        if (!last || here < box.x) to.moveTo(Math.max(here, box.x), y(value));
        else {
            if (here - last.x > 0.5) to.lineTo(here, y(last.value));
            to.lineTo(here, y(value));
        }
        if (!last || here - last.x > 0.5 || here < box.x) last = { x: here, value };
        else last.value = value;
    }
    if (last) to.lineTo(box.x + box.width, y(last.value));
    to.stroke();
}

/* The strip and the counter, from `y` on. */
export function drawSqlTrack(
    to: Context,
    x: (ns: number) => number,
    y: number,
    width: number,
    colors: Palette,
): void {
    let top = y;
    if (placed.value) {
        to.fillStyle = colorOf(colors);
        eachSeen(placed.value, x, { x: LABELS, y: top, width, height: STRIP }, (left, right) =>
            to.fillRect(left, top + 1, right - left, STRIP - 4),
        );
        top += STRIP;
    }
    drawCounter(to, x, { x: LABELS, y: top + 3, width, height: COUNTER - 6 }, colors);
}

function sizeText(name: string, value: number): string {
    return name.endsWith("_ns") ? duration(value) : count(value);
}

/* The labels next to them, with the middles of their heights. */
export function sqlLabels(y: number): { text: string; y: number }[] {
    const labels: { text: string; y: number }[] = [];
    if (placed.value)
        labels.push({ text: `SQL: ${count(placed.value.length)} rows`, y: y + STRIP / 2 - 1 });
    const of = counter.value;
    if (of) {
        const text = `${of.name} (up to ${sizeText(of.name, of.most)})`;
        labels.push({ text, y: y + (placed.value ? STRIP : 0) + COUNTER / 2 });
    }
    return labels;
}
