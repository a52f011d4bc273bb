/*
 * The worker in which the parser works: one holds the trace, another runs analyses, so that neither the page nor
 * the lanes wait for them. The first message says which trace; the others are questions, answered in order.
 */
import { type Answer, Instance, refusal } from "./instance";
import type { Bytes } from "./wasi";

export interface Start {
    module: WebAssembly.Module;
    name: string;
    file: Blob;
    /* Read it now, and answer questions; otherwise run analyses. */
    holds: boolean;
}

/* A question of the API, or the words of an analysis. */
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

/* So long it reads before it looks for questions. */
const TURN_MS = 80;

let start: Start | null = null;
let holder: Instance | null = null;
/* Why there are no more answers; empty: there are. */
let broken = "";

/* Reads ahead: each call costs a message to another process. */
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

/* A trap: what no trace may lead to, and which here is no more than an answer. Its instance is not asked again. */
function isTrap(error: unknown): boolean {
    return error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
}

function words(error: unknown): string {
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
        broken = words(error);
    }
}

function begin(): void {
    try {
        holder = instance();
        holder.open();
        readOn();
    } catch (error) {
        broken = words(error);
    }
}

function answer(question: string | Uint8Array): Answer {
    if (typeof question !== "string") {
        try {
            return instance().run(question);
        } catch (error) {
            return refusal(500, words(error));
        }
    }
    try {
        if (!broken && holder) return holder.ask(question);
    } catch (error) {
        if (!isTrap(error)) return refusal(500, words(error));
        broken = words(error);
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
