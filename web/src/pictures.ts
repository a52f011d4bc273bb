/*
 * Pictures of lanes: the server's drawing of a range around the window, one strip of pixels per lane. A window that
 * moves or changes its scale is drawn from the last picture until the next one arrives.
 */
import { signal } from "@preact/signals";
import { api, type Kind } from "./api";
import { pixelOf, stateColors } from "./colors";
import type { Box } from "./geometry";
import { canvasOf, drawPart, emptyImage } from "./images";
import { around, NEARLY } from "./moving";
import type { Range } from "./state";

/* Pixels of a lane from `x` on; the layout of its bytes is in docs/http-api.md. */
export interface Cell {
    x: number;
    pixels: number;
    state: number;
    mixture: boolean;
    first: number;
}

/* A range of the trace in pixels, as the server drew it. */
export interface Drawn extends Range {
    width: number;
    /* The end of the trace, as far as it had been read. */
    fresh: number;
}

export interface Picture extends Drawn {
    data: DataView;
    offset: number;
    count: number;
    /* The painted picture, and the only state that it shows in full colours (0: all). */
    canvas?: OffscreenCanvas;
    only?: number;
    /* The painted one that it replaces, until it is painted itself. */
    before?: Picture;
}

const CELL = 16;
const MOST_WIDTH = 8192;
const MOST_KEPT = 400;
const MOST_ASKED = 200;
/* In a frame no more pictures are painted in place of earlier ones when this time has passed. */
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
        first: data.getUint32(at + 12, true),
    };
}

/* The shares of the states in a cell's time, from 0 to 255, by number of the state. */
export function sharesAt(picture: Picture, index: number): number[] {
    const at = picture.offset + index * CELL;
    return stateColors.map((_, state) => (state ? picture.data.getUint8(at + 5 + state) : 0));
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

/* The cell at a time; -1: there is none. */
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
/* By state. Waiting is pale: it takes most of the time, and is of the least interest. */
const alphas = [0, 1, 1, 0.55, 1, 1];

/* All states but `only` are pale, unless that is 0. */
export function alphaOf(state: number, only: number): number {
    return alphas[state] * (only !== 0 && state !== only ? 0.2 : 1);
}

/* Stacks the states of a mixture; every state that occurs gets at least one pixel. */
function paintMixture(
    data: DataView,
    at: number,
    pixels: number[],
    into: Uint32Array,
    x: number,
    width: number,
) {
    let y = LANE_PIXELS;
    let rest = 0;
    for (const state of stacking) rest += data.getUint8(at + 5 + state);
    const full = rest > 250;
    for (const state of stacking) {
        const share = data.getUint8(at + 5 + state);
        if (share === 0) continue;
        rest -= share;
        const high = Math.max(1, Math.round((share * LANE_PIXELS) / 255));
        const last = full && rest <= 0 ? LANE_PIXELS : high;
        for (let i = 0; i < last && y > 0; i++) into[--y * width + x] = pixels[state];
    }
}

function paintLane(picture: Picture, only: number): ImageData {
    const { data, width } = picture;
    const image = emptyImage(width, LANE_PIXELS);
    const into = new Uint32Array(image.data.buffer);
    const pixels = stateColors.map((color, state) => pixelOf(color, alphaOf(state, only)));
    for (let i = 0; i < picture.count; i++) {
        const at = picture.offset + i * CELL;
        const x = data.getUint16(at, true);
        if (data.getUint8(at + 5)) {
            paintMixture(data, at, pixels, into, x, width);
            continue;
        }
        const last = Math.min(x + data.getUint16(at + 2, true), width);
        const pixel = pixels[data.getUint8(at + 4)];
        for (let y = 0; y < LANE_PIXELS; y++) into.fill(pixel, y * width + x, y * width + last);
    }
    return image;
}

/* Paints the picture, if that was not done yet. */
export function painted(picture: Picture, only: number): OffscreenCanvas {
    if (picture.canvas && picture.only === only) return picture.canvas;
    const own = picture.canvas ?? picture.before?.canvas;
    picture.canvas = canvasOf(paintLane(picture, only), own);
    picture.only = only;
    picture.before = undefined;
    return picture.canvas;
}

/* MARK: Pictures */

/* Requests the pictures of lanes; a lane that does not exist then has none. */
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

/* What is requested of the trace to show the window, and in how many pixels. */
export function rangeAround({ window, pixels, endNs }: Wanted) {
    const { from, to: until } = around(window);
    const to = Math.max(from + 1, Math.min(until, endNs));
    const scale = pixels / (window.to - window.from);
    return { from, to, width: Math.max(1, Math.min(MOST_WIDTH, Math.round((to - from) * scale))) };
}

/* What is wanted of pictures. */
export interface Wanted {
    window: Range;
    /* The window's width. */
    pixels: number;
    endNs: number;
    /* The current end of the trace. */
    fresh: number;
    /* Nearly the window's scale will do. */
    roughly: boolean;
}

/* Whether a picture shows all of the window, at its scale. */
export function covers(picture: Drawn, wanted: Wanted): boolean {
    const { window, pixels, fresh, roughly } = wanted;
    if (picture.fresh < fresh && window.to >= picture.to) return false;
    /* Widths are whole pixels: of very few none has a closer scale than the one that would be requested. */
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
    /* One request at a time; the next call of want() requests what is missing then. */
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

    /* Another frame is needed if the time did not suffice for all pictures. */
    endFrame(): void {
        if (this.isLate) arrived.value++;
    }

    /* What a lane is drawn from in this frame, in which at least one picture is painted. */
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
    draw(
        to: CanvasRenderingContext2D,
        lane: number,
        window: Range,
        box: Box,
        only: number,
    ): boolean {
        const newest = this.pictures.get(lane);
        if (!newest) return false;
        this.pictures.delete(lane);
        this.pictures.set(lane, newest);
        const picture = this.inTime(newest, only);
        drawPart(to, painted(picture, only), picture, window, box);
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
