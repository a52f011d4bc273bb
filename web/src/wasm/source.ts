/*
 * Selects what answers the page's requests: the server, or the parser in the page for a trace that was opened here
 * or is embedded in the file.
 */
import { signal } from "@preact/signals";
import { take } from "./dropped";
import { embeddedName, embeddedParts, embeddedTrace, isEmbedded } from "./embedded";
import { plain } from "./file";
import { failure, Local, type Parts } from "./local";

/* The source of the trace. */
export const source = signal<"server" | "page" | "file">("server");

const key = new URLSearchParams(location.search).get("opened");

/* The parser as served along with the page. */
async function served(): Promise<Parts> {
    const response = await fetch("trail.wasm");
    if (!response.ok) throw new Error(`trail.wasm: ${response.statusText}`);
    const module = await WebAssembly.compile(await response.arrayBuffer());
    return { module, script: "worker.js" };
}

async function openDropped(name: string): Promise<Local> {
    const file = await take(name);
    if (!file) throw new Error("The file is no longer available: open it again.");
    return new Local(file.name, await plain(file), await served());
}

async function openEmbedded(): Promise<Local> {
    const name = embeddedName();
    return new Local(name, await embeddedTrace(), await embeddedParts());
}

function open(): Promise<Local> | null {
    if (isEmbedded()) {
        source.value = "file";
        return openEmbedded();
    }
    if (!key) return null;
    source.value = "page";
    return openDropped(key);
}

const local = open();

export async function answerTo(request: string, signal?: AbortSignal): Promise<Response> {
    if (!local) return fetch(`api/${request}`, { signal });
    let opened: Local;
    try {
        opened = await local;
    } catch (error) {
        return failure(request, embeddedName() || "The file", error);
    }
    return opened.ask(request, signal);
}
