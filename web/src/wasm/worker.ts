/*
 * A worker that runs the parser: one worker holds the trace, another runs analyses, so that the page and the lanes
 * never wait for an analysis. The first message is the trace; the others are requests, answered in order.
 */
import { type Answer, Instance, refusal } from "./instance";
import type { Bytes } from "./wasi";

export interface Start {
    module: WebAssembly.Module;
    name: string;
    file: Blob;
    /* True: read the file now and answer requests. False: run analyses. */
    holds: boolean;
}

/* A request of the API, or the arguments of an analysis. */
export interface Asked {
    id: number;
    question: string | Uint8Array;
}

export interface Answered extends Answer {
    id: number;
}

declare class FileReaderSync {
    readAsArrayBuffer(blob: Blob): ArrayBuffer;
}

const scope = globalThis as unknown as {
    onmessage: (event: { data: Start | Asked }) => void;
    postMessage(answer: Answered, transfer: ArrayBuffer[]): void;
};

/* Reading time between two checks for messages. */
const TURN_MS = 80;

let start: Start | null = null;
let holder: Instance | null = null;
/* Why requests fail; empty: they do not. */
let broken = "";

/* Bytes to read ahead: each read is a message to another process. */
const AHEAD = 4 << 20;

function bytesOf(file: Blob): Bytes {
    const reader = new FileReaderSync();
    let begin = 0;
    let kept = new Uint8Array();
    return {
        size: file.size,
        read: (from, to) => {
            if (from < begin || to > begin + kept.length) {
                const end = Math.max(to, from + AHEAD);
                kept = new Uint8Array(reader.readAsArrayBuffer(file.slice(from, end)));
                begin = from;
            }
            return kept.subarray(from - begin, to - begin);
        },
    };
}

/* Whether it is a trap, that is, a bug of the parser. Reported as an error; the instance is not used again. */
function isTrap(error: unknown): boolean {
    return error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
}

function messageOf(error: unknown): string {
    const text = error instanceof Error ? error.message : String(error);
    return isTrap(error)
        ? `the parser failed (${text}); trail check may say more about this trace`
        : text;
}

function instance(): Instance {
    if (!start) throw new Error("no trace has been opened");
    return new Instance(start.module, start.name, bytesOf(start.file));
}

function readOn(): void {
    const until = performance.now() + TURN_MS;
    try {
        while (holder?.read()) {
            if (performance.now() < until) continue;
            setTimeout(readOn);
            return;
        }
    } catch (error) {
        broken = messageOf(error);
    }
}

function begin(): void {
    try {
        holder = instance();
        holder.open();
        readOn();
    } catch (error) {
        broken = messageOf(error);
    }
}

function answer(request: string | Uint8Array): Answer {
    if (typeof request !== "string") {
        try {
            return instance().run(request);
        } catch (error) {
            return refusal(500, messageOf(error));
        }
    }
    try {
        if (!broken && holder) return holder.ask(request);
    } catch (error) {
        if (!isTrap(error)) return refusal(500, messageOf(error));
        broken = messageOf(error);
    }
    return refusal(500, broken || "no trace has been opened");
}

scope.onmessage = ({ data }) => {
    if ("module" in data) {
        start = data;
        if (data.holds) begin();
        return;
    }
    const answered = { id: data.id, ...answer(data.question) };
    scope.postMessage(answered, [answered.body.buffer]);
};
