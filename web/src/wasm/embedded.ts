/*
 * Reads the parts embedded in a file of `trail report --embed`. They are compressed and in base64, in <script>
 * elements of a type that browsers do not run: <script type="application/gzip" data-part="trace">, in sequence.
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

/* Also removes the elements from the document: their text is larger than the decoded data. */
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
