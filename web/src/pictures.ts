/*
 * Pictures of lanes: the server's drawing of a range around the window, one strip of pixels per
 * lane. A window that moves or changes its scale is drawn from the last picture until the next one
 * arrives.
 */
import { signal } from "@preact/signals";
import { api, type Kind, states, WAITING } from "./api";
import { IDLE_WAIT, type Palette, palette, pixelOf, UNKNOWN_WAIT } from "./colors";
import type { Box } from "./geometry";
import { canvasOf, drawPart, emptyImage } from "./images";
import type { Lane } from "./lane_table";
import { around, NEARLY } from "./moving";
import type { Range } from "./state";

/* Pixels of a lane from `x` on; the layout of its bytes is in docs/http-api.md. */
export interface Cell {
    x: number;
    pixels: number;
    state: number;
    mixture: boolean;
    /* For waiting time, the class of what is waited for. */
    wait: number;
    first: number;
}

/* A range of the trace in pixels, as the server drew it. */
export interface Drawn extends Range {
    width: number;
    /* The end of the trace, as read so far. */
    fresh: number;
}

export interface Picture extends Drawn {
    data: DataView;
    offset: number;
    count: number;
    /* The painted picture, its colours, and the only state shown in full colours (0: all). */
    canvas?: OffscreenCanvas;
    colors?: Palette;
    only?: number;
    /* The painted picture that it replaces, until it is painted itself. */
    before?: Picture;
}

const CELL = 16;
const MOST_WIDTH = 8192;
const MOST_KEPT = 400;
const MOST_ASKED = 200;
/* After this time, a frame paints no more pictures that would replace earlier ones. */
const PAINT_MS = 4;

/* Incremented when a picture arrives. */
export const arrived = signal(0);

export function cellAt(picture: Picture, index: number): Cell {
    const at = picture.offset + index * CELL;
    const data = picture.data;
    return {
        x: data.getUint16(at, true),
        pixels: data.getUint16(at + 2, true),
        state: data.getUint8(at + 4),
        mixture: data.getUint8(at + 5) !== 0,
        wait: data.getUint8(at + 11),
        first: data.getUint32(at + 12, true),
    };
}

/* The shares of the states in a cell's time, from 0 to 255, by number of the state. */
export function sharesAt(picture: Picture, index: number): number[] {
    const at = picture.offset + index * CELL;
    return states.map((_, state) => (state ? picture.data.getUint8(at + 5 + state) : 0));
}

/* The times of a cell, in whole ns. */
export function timesOf(picture: Picture, cell: Cell): Range {
    const scale = (picture.to - picture.from) / picture.width;
    const from = Math.floor(picture.from + cell.x * scale);
    return {
        from,
        to: Math.max(from + 1, Math.ceil(picture.from + (cell.x + cell.pixels) * scale)),
    };
}

/* The first cell that ends after a time. */
export function firstCell(picture: Picture, ns: number): number {
    const x = ((ns - picture.from) / (picture.to - picture.from)) * picture.width;
    let low = 0;
    let high = picture.count;
    while (low < high) {
        const middle = (low + high) >> 1;
        const at = picture.offset + middle * CELL;
        if (picture.data.getUint16(at, true) + picture.data.getUint16(at + 2, true) <= x)
            low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The cell at a time; -1: none. */
export function cellIndex(picture: Picture, ns: number): number {
    const x = ((ns - picture.from) / (picture.to - picture.from)) * picture.width;
    const index = firstCell(picture, ns);
    return index < picture.count && cellAt(picture, index).x <= x ? index : -1;
}

/* MARK: Painting a lane */

/* Height of a lane's picture in pixels: states of a mixture are stacked by their shares. */
const LANE_PIXELS = 8;
/* From the bottom up: running states, then ready, then waiting. */
export const stacking = [2, 4, 5, 1, 3];

/* All states but `only` are pale, unless that is 0. */
export function alphaOf(state: number, only: number): number {
    return only !== 0 && state !== only ? 0.2 : 1;
}

/* A wait is pale with an edge on top; with fewer pixels it is all edge. */
const NARROW = 3;
/* The middle of a lane, where a thread that waits for work is a line. */
const MIDDLE = LANE_PIXELS / 2;

/* The pixels of a lane's picture: of states, and of the edge and the fill of waits by class. */
interface Paint {
    into: Uint32Array;
    width: number;
    states: number[];
    edges: number[];
    fills: number[];
}

/* Paints a column's waiting part, from the top down to `bottom`. */
function paintWait({ into, width, edges, fills }: Paint, x: number, bottom: number, of: number) {
    if (of === IDLE_WAIT) {
        into[Math.min(MIDDLE, bottom - 1) * width + x] = edges[of];
        return;
    }
    for (let y = 0; y < bottom; y++) {
        const isHatched = of === UNKNOWN_WAIT && (x + y) % 6 === 0;
        into[y * width + x] = isHatched ? edges[of] : fills[of];
    }
    if (of !== UNKNOWN_WAIT) into[x] = edges[of];
}

/* Stacks the states of a mixture; every state that occurs gets at least one pixel. */
function paintMixture(data: DataView, at: number, paint: Paint, x: number) {
    const { into, width, states } = paint;
    let y = LANE_PIXELS;
    let rest = 0;
    for (const state of stacking) rest += data.getUint8(at + 5 + state);
    const full = rest > 250;
    for (const state of stacking) {
        const share = data.getUint8(at + 5 + state);
        if (share === 0) continue;
        rest -= share;
        if (state === WAITING && full) {
            paintWait(paint, x, Math.max(y, 1), data.getUint8(at + 11));
            return;
        }
        const high = Math.max(1, Math.round((share * LANE_PIXELS) / 255));
        const last = full && rest <= 0 ? LANE_PIXELS : high;
        const pixel = state === WAITING ? paint.fills[data.getUint8(at + 11)] : states[state];
        for (let i = 0; i < last && y > 0; i++) into[--y * width + x] = pixel;
    }
}

function paintWhole(paint: Paint, cell: Cell) {
    const { into, width, states, edges } = paint;
    const last = Math.min(cell.x + cell.pixels, width);
    if (cell.state !== WAITING) {
        for (let y = 0; y < LANE_PIXELS; y++)
            into.fill(states[cell.state], y * width + cell.x, y * width + last);
        return;
    }
    for (let x = cell.x; x < last; x++) paintWait(paint, x, LANE_PIXELS, cell.wait);
    if (cell.wait === IDLE_WAIT || cell.wait === UNKNOWN_WAIT) return;
    const edge = cell.pixels < NARROW ? last : cell.x + 1;
    for (let y = 0; y < LANE_PIXELS; y++)
        into.fill(edges[cell.wait], y * width + cell.x, y * width + edge);
}

type Columns = [from: number, to: number];

/*
 * The columns that no cell covers while a goroutine exists: its state is unknown there, at damage. Of a P or thread, what
 * is between its spans is idle.
 */
export function gapsOf(picture: Picture, of: Kind, { begin, end }: Lane): Columns[] {
    const scale = picture.width / (picture.to - picture.from);
    const xOf = (ns: number) => Math.min(Math.max((ns - picture.from) * scale, 0), picture.width);
    const gaps: Columns[] = [];
    if (of !== "goroutine") return gaps;
    let x = Math.ceil(xOf(begin));
    for (let i = 0; i < picture.count; i++) {
        const cell = cellAt(picture, i);
        if (cell.x > x) gaps.push([x, cell.x]);
        x = Math.max(x, cell.x + cell.pixels);
    }
    const last = Math.floor(xOf(end));
    if (last > x) gaps.push([x, last]);
    return gaps;
}

function paintLane(picture: Picture, only: number, colors: Palette, gaps: Columns[]): ImageData {
    const { data, width } = picture;
    const image = emptyImage(width, LANE_PIXELS);
    const waiting = alphaOf(WAITING, only);
    const paint: Paint = {
        into: new Uint32Array(image.data.buffer),
        width,
        states: colors.states.map((color, state) => pixelOf(color, alphaOf(state, only))),
        edges: colors.waits.map(({ ink }) => pixelOf(ink, waiting)),
        fills: colors.waits.map(({ wash }) => pixelOf(wash, waiting)),
    };
    paint.states[0] = 0;
    for (let i = 0; i < picture.count; i++) {
        const at = picture.offset + i * CELL;
        if (data.getUint8(at + 5)) paintMixture(data, at, paint, data.getUint16(at, true));
        else paintWhole(paint, cellAt(picture, i));
    }
    for (const [from, to] of gaps)
        for (let x = from; x < to; x++) paintWait(paint, x, LANE_PIXELS, UNKNOWN_WAIT);
    return image;
}

/* Paints the picture unless it is already painted. */
export function painted(
    picture: Picture,
    only: number,
    gaps: () => Columns[] = () => [],
): OffscreenCanvas {
    const colors = palette.peek();
    if (picture.canvas && picture.only === only && picture.colors === colors) return picture.canvas;
    const own = picture.canvas ?? picture.before?.canvas;
    picture.canvas = canvasOf(paintLane(picture, only, colors, gaps()), own);
    picture.only = only;
    picture.colors = colors;
    picture.before = undefined;
    return picture.canvas;
}

/* MARK: Pictures */

/* Requests the pictures of lanes; a lane that does not exist in the range has none. */
export async function picturesOf(
    of: Kind,
    lanes: number[],
    how: { from: number; to: number; width: number; fresh: number },
): Promise<Map<number, Picture>> {
    const answer = await api.picture(of, lanes, how.from, how.to, how.width);
    const data = new DataView(answer);
    const found = new Map<number, Picture>();
    let at = 0;
    while (at + 8 <= data.byteLength) {
        const count = data.getUint32(at + 4, true);
        found.set(data.getUint32(at, true), { ...how, data, offset: at + 8, count });
        at += 8 + count * CELL;
    }
    return found;
}

/* The range of the trace to request for the window, and its number of pixels. */
export function rangeAround({ window, pixels, endNs }: Wanted) {
    const { from, to: until } = around(window);
    const to = Math.max(from + 1, Math.min(until, endNs));
    const scale = pixels / (window.to - window.from);
    return { from, to, width: Math.max(1, Math.min(MOST_WIDTH, Math.round((to - from) * scale))) };
}

/* What pictures have to show. */
export interface Wanted {
    window: Range;
    /* The window's width. */
    pixels: number;
    endNs: number;
    /* The current end of the trace. */
    fresh: number;
    /* Nearly the window's scale is good enough. */
    roughly: boolean;
}

/* Whether a picture shows all of the window, at its scale. */
export function covers(picture: Drawn, wanted: Wanted): boolean {
    const { window, pixels, fresh, roughly } = wanted;
    if (picture.fresh < fresh && window.to >= picture.to) return false;
    /* Widths are whole pixels: if there are very few, no scale is closer than the one that would be
     * requested. */
    const next = rangeAround(wanted);
    if (next.from === picture.from && next.to === picture.to && next.width === picture.width)
        return true;
    const scale = pixels / (window.to - window.from);
    const its = picture.width / (picture.to - picture.from);
    const most = roughly ? NEARLY : 1.001 + 0.5 / picture.width;
    if (its * most < scale) return false;
    if (its > scale * most && picture.width < MOST_WIDTH) return false;
    const last = Math.min(window.to, Math.max(fresh, picture.to));
    return picture.from <= Math.max(0, window.from) && picture.to >= last;
}

/* What the lanes are drawn from. */
export type Drawing = Pick<Pictures, "get" | "draw">;

/* The pictures of one kind of lanes. The least recently drawn one is replaced first. */
export class Pictures {
    private readonly pictures = new Map<number, Picture>();
    /* One request at a time; the next call of want() requests what is then missing. */
    private busy = false;
    private paintUntil = 0;
    private hasPainted = false;
    private isLate = false;

    constructor(readonly kind: Kind) {}

    get(lane: number): Picture | undefined {
        return this.pictures.get(lane);
    }

    beginFrame(): void {
        this.paintUntil = performance.now() + PAINT_MS;
        this.hasPainted = false;
        this.isLate = false;
    }

    /* Another frame is needed if there was no time for all pictures. */
    endFrame(): void {
        if (this.isLate) arrived.value++;
    }

    /* What a lane is drawn from in this frame, which paints at least one picture. */
    private inTime(picture: Picture, only: number): Picture {
        const { before } = picture;
        if (!before || picture.canvas || before.only !== only) return picture;
        if (this.hasPainted && performance.now() >= this.paintUntil) {
            this.isLate = true;
            return before;
        }
        this.hasPainted = true;
        return picture;
    }

    /* Draws the window's part of a lane into a rectangle of `to`. Returns false if there is no picture yet. */
    draw(to: CanvasRenderingContext2D, of: Lane, window: Range, box: Box, only: number): boolean {
        const newest = this.pictures.get(of.lane);
        if (!newest) return false;
        this.pictures.delete(of.lane);
        this.pictures.set(of.lane, newest);
        const picture = this.inTime(newest, only);
        drawPart(
            to,
            painted(picture, only, () => gapsOf(picture, this.kind, of)),
            picture,
            window,
            box,
        );
        return true;
    }

    /* Requests the missing pictures of these lanes around the window. */
    async want(lanes: number[], wanted: Wanted) {
        const missing = lanes.filter((lane) => {
            const picture = this.pictures.get(lane);
            return !picture || !covers(picture, wanted);
        });
        if (missing.length === 0) return;
        const how = { ...rangeAround(wanted), fresh: wanted.fresh };
        const some = missing.slice(0, MOST_ASKED);
        if (this.busy) return;
        this.busy = true;
        try {
            this.take(await picturesOf(this.kind, some, how));
        } finally {
            this.busy = false;
        }
        arrived.value++;
    }

    private take(found: ReadonlyMap<number, Picture>) {
        for (const [lane, picture] of found) {
            const old = this.pictures.get(lane);
            picture.before = old?.canvas ? old : old?.before;
            this.pictures.delete(lane);
            this.pictures.set(lane, picture);
        }
        for (const lane of this.pictures.keys()) {
            if (this.pictures.size <= MOST_KEPT) break;
            this.pictures.delete(lane);
        }
    }
}
