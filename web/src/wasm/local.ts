/*
 * Answers requests of the API without a server, with two workers that run the parser: one holds the trace, the other
 * runs analyses. Failures become answers with status 500; for `status` the member `error`.
 */
import type { Status } from "../api";
import { COMMAND } from "./instance";
import type { Answered, Asked, Start } from "./worker";

/* The compiled parser and the script of the workers. */
export interface Parts {
    module: WebAssembly.Module;
    /* URL of the workers' script. */
    script: string;
}

/* Time limit of an analysis, the same as the server's. */
const RUN_MS = 120000;

interface Waiting {
    resolve(answer: Answered): void;
    reject(error: Error): void;
}

/* A worker that answers requests in order. */
class Asker {
    private readonly worker: Worker;
    private readonly waiting = new Map<number, Waiting>();
    private count = 0;

    constructor(parts: Parts, start: Start) {
        this.worker = new Worker(parts.script);
        this.worker.onmessage = ({ data }: MessageEvent<Answered>) => {
            this.waiting.get(data.id)?.resolve(data);
            this.waiting.delete(data.id);
        };
        this.worker.onerror = (event) => {
            event.preventDefault();
            this.end(event.message || "the parser could not be started");
        };
        this.worker.postMessage(start);
    }

    ask(request: string | Uint8Array): Promise<Answered> {
        const asked: Asked = { id: ++this.count, question: request };
        return new Promise((resolve, reject) => {
            this.waiting.set(asked.id, { resolve, reject });
            this.worker.postMessage(asked);
        });
    }

    end(why: string): void {
        this.worker.terminate();
        for (const { reject } of this.waiting.values()) reject(new Error(why));
        this.waiting.clear();
    }
}

function answered(status: number, value: unknown): Response {
    return new Response(JSON.stringify(value), { status });
}

/* The last known status, if any, with the error and marked as done. */
function failedStatus(title: string, error: string, known?: Status): Response {
    const none = { read_bytes: 0, size_bytes: 0, end: 0, events: 0, spans: 0, memory_bytes: 0 };
    const counts = { goroutines: 0, procs: 0, threads: 0, logs: 0, samples: 0 };
    const bars = { ranges: 0, regions: 0, tasks: 0 };
    const can = { can_run: false, can_sql: false, live: false };
    return answered(200, {
        ...(known ?? { version: 0, title, ...none, ...counts, bars, ...can }),
        done: true,
        error,
    });
}

/* The answer to a request after a failure. */
export function failure(request: string, title: string, error: unknown, known?: Status): Response {
    const text = error instanceof Error ? error.message : String(error);
    return request.startsWith("status")
        ? failedStatus(title, text, known)
        : answered(500, { error: text });
}

export class Local {
    private readonly holder: Asker;
    private runner: Asker | null;
    /* Resolves with the last analysis: they run one after another. */
    private runs: Promise<unknown> = Promise.resolve();
    private known?: Status;

    constructor(
        readonly name: string,
        private readonly file: Blob,
        private readonly parts: Parts,
    ) {
        this.holder = this.make(true);
        /* Started in advance, because the server that provides the script may have ended later. */
        this.runner = this.make(false);
    }

    private make(holds: boolean): Asker {
        const { file, name, parts } = this;
        return new Asker(parts, { module: parts.module, name, file, holds });
    }

    async ask(request: string, signal?: AbortSignal): Promise<Response> {
        try {
            let answer = await this.holder.ask(request);
            if (answer.type === COMMAND) answer = await this.run(answer.body);
            signal?.throwIfAborted();
            const response = new Response(answer.body, {
                status: answer.status,
                headers: { "Content-Type": answer.type },
            });
            return request.startsWith("status") ? await this.statusOf(response) : response;
        } catch (error) {
            if (signal?.aborted) throw error;
            return failure(request, this.name, error, this.known);
        }
    }

    private async statusOf(response: Response): Promise<Response> {
        const value = (await response.json()) as Status;
        if (!response.ok) return failedStatus(this.name, value.error ?? "", this.known);
        this.known = value;
        return answered(200, value);
    }

    private run(words: Uint8Array): Promise<Answered> {
        const result = this.runs.then(() => this.runNow(words));
        this.runs = result.catch(() => undefined);
        return result;
    }

    private async runNow(words: Uint8Array): Promise<Answered> {
        this.runner ??= this.make(false);
        const timer = setTimeout(() => {
            this.runner?.end("it takes too long");
            this.runner = null;
        }, RUN_MS);
        try {
            return await this.runner.ask(words);
        } finally {
            clearTimeout(timer);
        }
    }
}
