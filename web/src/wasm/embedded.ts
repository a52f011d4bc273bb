/*
 * The file that `trail report --embed` makes: the page with everything in it. Its parts are compressed and in base64, in
 * elements that are no scripts: <script type="application/gzip" data-part="trace">, one after the other.
 */
import { decompressed } from "./file";
import type { Parts } from "./local";

function elements(part: string): HTMLElement[] {
    return [...document.querySelectorAll<HTMLElement>(`script[data-part="${part}"]`)];
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
}

/* Takes the elements out: their text is larger than what is in it. */
function take(part: string): Promise<Blob> {
    const pieces: Blob[] = [];
    for (const element of elements(part)) {
        pieces.push(new Blob([bytesOf(element.textContent ?? "")]));
        element.remove();
    }
    return decompressed(new Blob(pieces), "gzip");
}

export function isEmbedded(): boolean {
    return elements("trace").length > 0;
}

export function embeddedName(): string {
    return elements("trace")[0]?.dataset.name ?? "";
}

export async function embeddedParts(): Promise<Parts> {
    const wasm = await (await take("wasm")).arrayBuffer();
    const script = new Blob([await take("worker")], { type: "text/javascript" });
    return { module: await WebAssembly.compile(wasm), script: URL.createObjectURL(script) };
}

export function embeddedTrace(): Promise<Blob> {
    return take("trace");
}
