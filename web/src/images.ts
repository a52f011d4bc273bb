/*
 * Images that are painted pixel by pixel, and drawn on the timeline from canvases of their own: browsers without a GPU copy
 * a whole canvas each time if it is both written and drawn from.
 */
import type { Box } from "./geometry";
import type { Range } from "./state";

type Context = CanvasRenderingContext2D;

let scratch = new ImageData(1, 1);

/* Returns an empty image, valid until the next call: most are as large as the previous one. */
export function emptyImage(width: number, height: number): ImageData {
    if (scratch.width === width && scratch.height === height) scratch.data.fill(0);
    else scratch = new ImageData(width, height);
    return scratch;
}

/* Returns a canvas with the image, reusing `old` if given. */
export function canvasOf(image: ImageData, old?: OffscreenCanvas): OffscreenCanvas {
    const { width, height } = image;
    const canvas = old ?? new OffscreenCanvas(width, height);
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    canvas.getContext("2d")?.putImageData(image, 0, 0);
    return canvas;
}

/* Draws the visible part of an image into a box; the full width of the image is the range `of`. */
export function drawPart(
    to: Context,
    image: OffscreenCanvas,
    of: Range,
    window: Range,
    box: Box,
): void {
    const left = Math.max(window.from, of.from);
    const right = Math.min(window.to, of.to);
    if (right <= left) return;
    const scale = image.width / (of.to - of.from);
    const perNs = box.width / (window.to - window.from);
    to.drawImage(
        image,
        (left - of.from) * scale,
        0,
        (right - left) * scale,
        image.height,
        box.x + (left - window.from) * perNs,
        box.y,
        (right - left) * perNs,
        box.height,
    );
}
