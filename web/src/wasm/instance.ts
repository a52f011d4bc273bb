/*
 * An instance of the parser (src/page/page.h): it either holds the trace and answers requests of the API, or runs
 * one analysis.
 */
import { type Bytes, Exit, joined, TooLong, Wasi } from "./wasi";

interface Exports {
    memory: WebAssembly.Memory;
    _initialize(): void;
    page_room(size: number): number;
    page_open(): number;
    page_read(): number;
    page_ask(): number;
    page_run(size: number): number;
}

export interface Answer {
    status: number;
    type: string;
    body: Uint8Array<ArrayBuffer>;
}

/* The type of an answer that is a command line for run(). */
export const COMMAND = "application/x-trail-command";

const MOST_WRITTEN = 64 << 20;

export class Instance {
    private readonly exports: Exports;
    private readonly wasi: Wasi;
    private readonly name: string;

    constructor(module: WebAssembly.Module, name: string, file: Bytes) {
        /* An empty name is not a path, and "-" would be stdin. */
        this.name = name === "" || name === "-" ? "trace" : name;
        this.wasi = new Wasi(file, MOST_WRITTEN);
        const instance = new WebAssembly.Instance(module, this.wasi.imports(module));
        this.exports = instance.exports as unknown as Exports;
        this.wasi.attach(this.exports.memory);
        this.exports._initialize();
    }

    private put(bytes: Uint8Array): void {
        const at = this.exports.page_room(bytes.length);
        if (at === 0) throw new Error("no memory");
        new Uint8Array(this.exports.memory.buffer).set(bytes, at);
    }

    private putText(text: string): void {
        this.put(new TextEncoder().encode(`${text}\0`));
    }

    private text(at: number): string {
        const bytes = new Uint8Array(this.exports.memory.buffer);
        return new TextDecoder().decode(bytes.subarray(at, bytes.indexOf(0, at)));
    }

    /* MARK: Holding the trace */

    open(): void {
        this.putText(this.name);
        const wrong = this.exports.page_open();
        if (wrong) throw new Error(this.text(wrong));
    }

    /* Reads the next batch. Returns false at the end. */
    read(): boolean {
        return this.exports.page_read() !== 0;
    }

    ask(request: string): Answer {
        this.putText(request);
        const at = this.exports.page_ask();
        const view = new DataView(this.exports.memory.buffer);
        const [status, type, data, size] = [0, 4, 8, 12].map((i) => view.getUint32(at + i, true));
        const body = new Uint8Array(this.exports.memory.buffer, data, size).slice();
        return { status, type: this.text(type), body };
    }

    /* MARK: Running an analysis */

    /* Returns the output of the command, or the same error as the server's API. */
    run(words: Uint8Array): Answer {
        let code: number;
        try {
            this.put(words);
            code = this.exports.page_run(words.length);
        } catch (error) {
            if (error instanceof TooLong) return refusal(503, "the answer is longer than 64 MB");
            if (!(error instanceof Exit)) throw error;
            code = error.code;
        }
        const [body, errors] = this.wasi.written.map(joined);
        const line = firstLine(errors);
        if (code === 2) return refusal(400, line);
        if (code < 0 || code > 1 || body.length === 0)
            return refusal(code === 1 ? 400 : 500, line || "it failed");
        return { status: 200, type: "application/json", body };
    }
}

/* The first line of stderr, without the command's name, cut to the length that the server allows. */
function firstLine(errors: Uint8Array): string {
    const text = errors.subarray(0, 511);
    const end = text.indexOf(10);
    const line = text.subarray(0, end < 0 ? text.length : end);
    const name = new TextDecoder().decode(line.subarray(0, 7)) === "trail: " ? 7 : 0;
    return new TextDecoder().decode(line.subarray(name, name + 255));
}

export function refusal(status: number, error: string): Answer {
    const body = new TextEncoder().encode(JSON.stringify({ error }));
    return { status, type: "application/json", body };
}
