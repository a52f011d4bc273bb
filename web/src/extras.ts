/*
 * Data drawn over and above the lanes: regions, tasks, logs, CPU samples and counters.
 * Requested for one window at a time; the last answer is shown until the next one arrives.
 */
import { signal } from "@preact/signals";
import { api, type Kind, type Metrics } from "./api";
import { around, moving, NEARLY } from "./moving";
import type { Range } from "./state";

export interface Bar {
    bar: number;
    kind: "region" | "task";
    name: string;
    lane: number;
    begin: number;
    end: number;
    depth: number;
    task: number;
    open: boolean;
    merged: number;
}

export interface Mark {
    at: number;
    lane: number;
    text: string;
    count: number;
}

/*
 * A request that is repeated when the window moves. Only one is sent at a time; when its answer arrives, the newest
 * window is requested. A failed request is not repeated until the window changes again.
 */
export class Kept<T> {
    readonly value = signal<T | null>(null);
    private key = "";
    private busy = false;
    private next: { key: string; args: unknown } | null = null;

    constructor(private readonly ask: (args: never) => Promise<T>) {}

    want(key: string, args: unknown): void {
        if (key === this.key) return;
        this.next = { key, args };
        if (!this.busy) void this.run();
    }

    private async run(): Promise<void> {
        this.busy = true;
        while (this.next) {
            const { key, args } = this.next;
            this.next = null;
            this.key = key;
            try {
                this.value.value = await this.ask(args as never);
            } catch {
                /* The last answer remains. */
            }
        }
        this.busy = false;
    }
}

/* Of what belongs to lanes of goroutines, what lanes of a kind have. */
export function onLanes<T>(of: Kept<T[]>, kind: Kind): T[] {
    return (kind === "goroutine" && of.value.value) || [];
}

interface Wanted {
    window: Range;
    width: number;
    lanes: string;
    kind: Bar["kind"];
}

async function askBars(wanted: Wanted): Promise<Bar[]> {
    const query = { ...around(wanted.window), width: wanted.width * 2, kind: wanted.kind };
    const answer = await api.bars({ ...query, lanes: wanted.lanes || undefined });
    return answer.bars.map((row) => ({
        bar: Number(row[0]),
        kind: wanted.kind,
        name: Number(row[2]) < 0 ? `${row[11]} of them` : (answer.names[Number(row[2])] ?? ""),
        lane: Number(row[3]),
        begin: Number(row[4]),
        end: Number(row[5]),
        depth: Number(row[6]),
        task: Number(row[7]),
        open: Boolean(row[9]),
        merged: Number(row[11] ?? 1),
    }));
}

async function askMarks(kind: "log" | "sample", wanted: Wanted) {
    const query = { ...around(wanted.window), width: wanted.width * 2, kind };
    const answer = await api.marks({ ...query, lanes: wanted.lanes || undefined });
    return answer.marks.map(
        (row): Mark => ({
            at: row[0],
            lane: row[1],
            text: answer.names[row[2]] ?? "",
            count: row[3],
        }),
    );
}

export const regions = new Kept<Bar[]>(askBars);
export const tasks = new Kept<Bar[]>(askBars);
export const logs = new Kept<Mark[]>((wanted: Wanted) => askMarks("log", wanted));
export const samples = new Kept<Mark[]>((wanted: Wanted) => askMarks("sample", wanted));
/* A column for each pixel. */
export const metrics = new Kept<Metrics>(({ window, width }: Wanted) => {
    const { from, to } = around(window);
    const columns = Math.round(((to - from) / (window.to - window.from)) * width);
    return api.metrics(from, to, Math.max(1, columns));
});
/* Metrics of the whole trace, for the overview. */
export const wholeMetrics = new Kept<Metrics>(({ window, width }: Wanted) =>
    api.metrics(0, Math.max(1, window.to), width),
);

let last = { window: { from: 0, to: 0 }, fresh: 0 };

/*
 * The window to request, and the end of the trace. While the window moves, the last request is kept
 * as long as it covers the window at nearly its scale.
 */
function windowOf(window: Range, fresh: number): { window: Range; fresh: number } {
    const has = around(last.window);
    const ratio = (last.window.to - last.window.from) / (window.to - window.from);
    const isNear = ratio > 1 / NEARLY && ratio < NEARLY;
    const isIn = has.from <= Math.max(0, window.from) && has.to >= window.to;
    if (!(moving.value && isNear && isIn)) last = { window, fresh };
    return last;
}

export function wantExtras(of: {
    kind: Kind;
    window: Range;
    width: number;
    lanes: number[];
    fresh: number;
    has: { regions: boolean; tasks: boolean; logs: boolean; samples: boolean };
}): void {
    const { window, fresh } = windowOf(of.window, of.fresh);
    const base = `${window.from} ${window.to} ${of.width} ${fresh}`;
    const lanes = of.lanes.join(",");
    const wanted = { window, width: of.width, lanes: "" };
    metrics.want(base, wanted);
    /* The server takes an empty list as all lanes. */
    if (of.kind !== "goroutine" || of.lanes.length === 0) return;
    const laned = { ...wanted, lanes };
    if (of.has.regions) regions.want(`${base} ${lanes}`, { ...laned, kind: "region" });
    if (of.has.tasks) tasks.want(`${base} ${lanes}`, { ...laned, kind: "task" });
    if (of.has.logs) logs.want(`${base} ${lanes}`, laned);
    if (of.has.samples) samples.want(`${base} ${lanes}`, laned);
}
