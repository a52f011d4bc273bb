/*
 * The HTTP API of `trail view` (docs/http-api.md), typed. Times are nanoseconds since the first event.
 */
import { whileBusy } from "./busy";
import { inForm, original, plain, plainLine } from "./plain";
import { answerTo } from "./wasm/source";

export type Kind = "goroutine" | "proc" | "thread";

/* States of a span, by number. 0: the lane does not exist at that time. */
export const states = ["none", "runnable", "running", "waiting", "syscall", "blocked"] as const;
export const stateNames = [
    "none",
    "ready",
    "running",
    "waiting",
    "syscall",
    "syscall, {slot_lost}",
];
export const RUNNABLE = 1;
export const RUNNING = 2;
export const WAITING = 3;
export const SYSCALL = 4;

export interface Status {
    version: number;
    title: string;
    made_by: string;
    words: Record<string, string>;
    done: boolean;
    read_bytes: number;
    received_bytes?: number; // not of a dropped file
    size_bytes: number;
    end: number;
    events: number;
    spans: number;
    memory_bytes: number;
    goroutines: number;
    procs: number;
    threads: number;
    bars: { ranges: number; regions: number; tasks: number };
    logs: number;
    samples: number;
    error?: string;
    live: boolean;
    wall_ns?: number;
    /* The file was replaced, or is longer than what was read. */
    changed?: boolean;
    can_run: boolean;
    can_sql: boolean;
    can_source: boolean;
}

export interface LaneRows {
    all: number;
    matching: number;
    names: string[];
    rows: number[][];
}

export interface Frame {
    function: string;
    file: string;
    line: number;
}

/* Lines of a source file around one line. */
export interface SourceLines {
    path: string;
    line: number;
    first: number;
    lines: string[];
}

export interface LaneRef {
    lane: number;
    id: number;
    name?: string;
    span?: number;
}

export interface Span {
    lane: number;
    id: number;
    name: string;
    span: number;
    spans: number;
    begin: number;
    end: number;
    open: boolean;
    state: string;
    reason: string;
    /* If kinds are recorded: what it waits for. */
    wait_kind?: string;
    object?: string;
    phrase?: string;
    /* Of a wait in Go's package sync: its function, "sync.(*Mutex).Lock". */
    sync?: string;
    stack: Frame[];
    /* For a running span: the stack with which the following span begins. */
    stack_end?: Frame[];
    proc?: LaneRef;
    thread?: LaneRef;
    waker?: LaneRef;
    wakes?: (LaneRef & { at: number })[];
    creator?: LaneRef;
    goroutine?: LaneRef;
    /* The lane that held the lock for most of the wait; `inferred`: derived from what ended the
     * wait. */
    held_by?: LaneRef & { inferred: boolean };
    /* For a wait: the waker, which the API returns with the following span. */
    ender?: LaneRef;
}

export interface Metrics {
    columns: number;
    from: number;
    to: number;
    metrics: Record<string, { min: number[]; max: number[] }>;
    counters: Record<string, number[]>;
    /* Share of each column, 0 to 1. */
    shares?: { stopped: number[]; marking: number[] };
    exact?: boolean;
}

/* How many lanes of a group are in each state: averages per column. */
export interface GroupSums {
    from: number;
    to: number;
    columns: number;
    members: number;
    /* The number of members that were counted, and the most of these that existed at the same
     * time. */
    summed: number;
    peak: number;
    states: Record<string, number[]>;
}

export interface Bars {
    bars: (number | boolean | string)[][];
    names: string[];
    merged: boolean;
}

export interface Marks {
    marks: number[][];
    names: string[];
}

export type MarkKind = "log" | "sample";

/* A log or CPU sample. */
export interface MarkFacts {
    mark: number;
    at: number;
    text: string;
    before: number;
    after: number;
    goroutine?: LaneRef;
    proc?: LaneRef;
    thread?: LaneRef;
    stack: Frame[];
}

export interface Selection {
    duration: number;
    states: Record<string, number>;
    by_name: { name: string; lanes: number; states: Record<string, number> }[];
    by_reason: {
        reason: string;
        wait_kind?: string;
        object?: string;
        ns: number;
        spans: number;
    }[];
    lanes: number;
    spans_seen: number;
    complete: boolean;
}

/* The longest spans of a range; `inside`: the length within it. */
export interface SpanList {
    all: number;
    spans: (LaneRef & {
        span: number;
        begin: number;
        end: number;
        inside: number;
        state: string;
        reason: string;
        wait_kind?: string;
        object?: string;
        phrase?: string;
        sync?: string;
        function?: string;
        held_by?: LaneRef & { inferred: boolean };
        /* Of a P or thread. */
        goroutine?: LaneRef;
    })[];
}

export interface Found {
    type: string;
    text: string;
    kind: Kind;
    lane: number;
    /* The number of the lane or task. */
    id?: number;
    task?: number;
    at: number;
    end: number;
}

export interface Like {
    count: number;
    total_ns: number;
    histogram: { from_ns: number; to_ns: number; count: number }[];
    longest: { lane: number; id: number; span: number; begin: number; end: number }[];
}

export type Query = Record<string, string | number | undefined>;

/* An error response of the server, with its message. */
export class ApiError extends Error {
    constructor(
        readonly status: number,
        message: string,
    ) {
        super(message);
    }
}

async function request(path: string, query: Query, signal?: AbortSignal): Promise<Response> {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
        if (value !== undefined) search.set(name, original(String(value)));
    }
    const response = await answerTo(`${path}?${search}`, signal);
    if (response.ok) return response;
    const text = await response.text();
    let message = text;
    try {
        message = (JSON.parse(text) as { error: string }).error ?? text;
    } catch {
        /* plain text */
    }
    throw new ApiError(response.status, plain(message.trim()));
}

/* Texts of answers have no characters that reverse the text around them. */
function ask<T>(path: string, query: Query, signal?: AbortSignal, form = plain): Promise<T> {
    return whileBusy(
        request(path, query, signal)
            .then((response) => response.json())
            .then((answer) => inForm(answer, form) as T),
    );
}

/* Lanes requested at a time, so that parsing an answer does not block the page. */
const PAGE = 10000;

/* Logs in one answer. */
const MOST_LOGS = 1000;

export const api = {
    status: () => ask<Status>("status", {}),
    /* The server reads the changed file again. */
    again: () => ask<unknown>("again", {}),
    /* One page of the lanes, starting with `first`. */
    lanes: (kind: Kind, first: number) => ask<LaneRows>("lanes", { kind, first, count: PAGE }),
    /* What the lanes of a page waited for: alternating indexes of names and ns. */
    waits: (kind: Kind, first: number) =>
        ask<{ all: number; names: string[]; rows: number[][] }>("waits", {
            kind,
            first,
            count: PAGE,
        }),
    picture: async (kind: Kind, lanes: number[], from: number, to: number, width: number) => {
        const query = { kind, lanes: lanes.join(","), from, to, width };
        return whileBusy(request("picture", query).then((response) => response.arrayBuffer()));
    },
    span: async (
        kind: Kind,
        lane: number,
        where: { span?: number; at?: number },
        signal?: AbortSignal,
    ) => {
        const found = await ask<Span>("span", { kind, lane, ...where }, signal);
        if (/^(waiting|running)$/.test(found.state) && found.span + 1 < found.spans) {
            const next = await ask<Span>("span", { kind, lane, span: found.span + 1 }, signal);
            if (found.state === "waiting") found.ender = next.waker;
            else if (kind === "goroutine") found.stack_end = next.stack;
        }
        return found;
    },
    stackOf: async (kind: Kind, lane: number, span: number) =>
        (await ask<Span>("span", { kind, lane, span })).stack,
    bars: (query: Query) => ask<Bars>("bars", query),
    marks: (query: Query) => ask<Marks>("marks", query),
    mark: (
        kind: MarkKind,
        where: { mark: number } | { lane: number; at: number },
        signal?: AbortSignal,
    ) => ask<MarkFacts>("mark", { kind, ...where }, signal),
    metrics: (from: number, to: number, width: number) =>
        ask<Metrics>("metrics", { from, to, width }),
    group: (query: Query) => ask<GroupSums>("group", query),
    select: (query: Query) => ask<Selection>("select", query),
    spans: (query: Query) => ask<SpanList>("spans", query),
    find: (text: string, signal?: AbortSignal) =>
        ask<{ results: Found[]; more: boolean }>("find", { text, most: 100 }, signal),
    /* The first logs that contain the text from a time on, or the last ones overall. */
    logsWith: (text: string, where: { from: number } | { last: 1 }) =>
        ask<{ results: Found[]; more: boolean }>("find", {
            text,
            type: "log",
            most: MOST_LOGS,
            ...where,
        }),
    like: (state: string, reason: string) =>
        ask<Like>("like", { kind: "goroutine", state, reason: reason || undefined }),
    source: (file: string, line: number) =>
        ask<SourceLines>("source", { file, line }, undefined, plainLine),
    run: <T>(command: string, query: Query) => ask<T>("run", { command, ...query }),
    /* The viewer with the trace embedded, as a document. */
    embed: () => whileBusy(request("embed", {}).then((response) => response.text())),
    sql: <T>(query: string) => ask<T>("sql", { query }),
    /* Texts of trail itself, with the ends of their lines. */
    queries: <T>() => ask<T>("sql", { query: ".queries" }, undefined, (text) => text),
};
