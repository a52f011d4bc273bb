/*
 * The panel of the critical path (`trail why`): what it is the path of, and its segments in time
 * order, which are also drawn over the lanes.
 */
import { type Signal, useSignalEffect } from "@preact/signals";
import type { Query } from "./api";
import { Breaking } from "./breaking";
import { count, duration, shortName } from "./format";
import { laneOf, reveal } from "./lanes";
import { Waiting } from "./panel";
import { timeText } from "./ruler";
import { type Answer, jump, useRun, window } from "./run";
import { leaveFinding } from "./select";
import { kind, leads, path, range, showRange, tab, why } from "./state";
import { Table } from "./table";
import { waitName } from "./waits";
import { inWords, term } from "./words";

export interface Segment {
    begin_ns: number;
    end_ns: number;
    goroutine: number;
    group: string;
    depth: number;
    state: string;
    reason?: string;
    wait_kind?: string;
    object?: string;
    function: string;
    /* The goroutine that the end of the segment woke, what it had waited for, and how long the lock
     * had been held. */
    wakes?: number;
    awaited?: string;
    awaited_kind?: string;
    awaited_object?: string;
    held_ns?: number;
    waited_at?: { function: string }[];
}

export interface Path {
    origin_ns: number;
    of: string;
    task?: number;
    name?: string;
    goroutine: number | null;
    complete?: boolean;
    begin_ns: number;
    end_ns: number;
    /* Only the longest, if there are more than MOST_SEGMENTS in total. */
    segments: Segment[];
    all: number;
    /* Sums over all segments with the same activity or wait, place and start function. */
    totals: Total[];
}

interface Total {
    group: string;
    state: string;
    reason?: string;
    wait_kind?: string;
    object?: string;
    function: string;
    ns: number;
}

/* A part of a path: what its goroutine did or waited for, and the times by what ended these waits. */
interface Part {
    what: string;
    by: Map<string, number>;
    ns: number;
}

/* What a segment's goroutine let another one wait for: "mutex cache_mu", "sync.(*Mutex).Lock". */
function awaitedBy({ awaited, awaited_kind, awaited_object, waited_at }: Segment): string {
    const place = waited_at?.[0]?.function ?? "";
    const isSync = awaited === "sync" && place.startsWith("sync.");
    const reason = isSync ? place : awaited;
    return waitName({ reason, wait_kind: awaited_kind, object: awaited_object });
}

/* Smaller parts of a path are not named. */
const WORTH = 0.1;
/* What ended this share of the waits of a part is named. */
const NEARLY_ALL = 0.95;
const MOST_PARTS = 3;

/* The largest parts of a path as its last goroutine saw them: what others did meanwhile is its wait. */
function partsOf(of: Path): Part[] {
    const parts = new Map<string, Part>();
    const add = (what: string, by: string, ns: number) => {
        const part = parts.get(what) ?? { what, by: new Map(), ns: 0 };
        part.ns += ns;
        part.by.set(by, (part.by.get(by) ?? 0) + ns);
        parts.set(what, part);
    };
    let since = 0;
    for (const one of inOrder(of)) {
        since += lengthOf(one);
        if (one.depth > 0 && one.wakes !== of.goroutine) continue;
        const verb = one.held_ns ? "held by" : "woken by";
        if (one.depth === 0) add(waitName(one) || stateText(one), "", since);
        else add(awaitedBy(one), `, ${verb} ${named(one.goroutine, one.group)}`, since);
        since = 0;
    }
    const least = WORTH * (of.end_ns - of.begin_ns);
    const large = [...parts.values()].filter(({ what, ns }) => what && ns >= least);
    return large.sort((a, b) => b.ns - a.ns).slice(0, MOST_PARTS);
}

/* "Largest parts: 23.5 ms read pipe, woken by thread 2 supply; 12.8 ms mutex cache_mu, held by thread 3 flush." */
export function LargestParts(props: { of: Path }) {
    const { of } = props;
    const parts = of.all > of.segments.length ? [] : partsOf(of);
    if (parts.length === 0) return null;
    const texts = parts.map(({ what, by, ns }) => {
        const [ender] = [...by].find(([, its]) => its >= NEARLY_ALL * ns) ?? [""];
        return `${duration(ns)} ${what}${ender}`;
    });
    return (
        <p class="say">
            <bdi>
                <Breaking of={`Largest part${texts.length > 1 ? "s" : ""}: ${texts.join("; ")}.`} />
            </bdi>
        </p>
    );
}

/* The number of segments requested, longest first: millions would be more than the server sends or
 * a table shows. */
const MOST_SEGMENTS = 2000;

export function stateText(of: Total | Segment): string {
    const what = waitName(of);
    if (of.state === "syscall") return "syscall";
    if (of.state !== "blocked") return of.state;
    return what ? `waiting: ${what}` : "waiting";
}

/* "wakes thread 5 from mutex cache_mu (held for 15.1 ms)" */
function wakeText(of: Segment): string {
    if (of.wakes === undefined) return "";
    const what = waitName({
        reason: of.awaited,
        wait_kind: of.awaited_kind,
        object: of.awaited_object,
    });
    const held = of.held_ns ? ` (held for ${duration(of.held_ns)})` : "";
    return `wakes ${term("task_id")}${of.wakes}${what && ` from ${what}`}${held}`;
}

/* The time of all segments with the same state, place and start function. */
export interface Sum {
    key: string;
    group: string;
    state: string;
    function: string;
    ns: number;
}

export function sumsOf(of: Path): Map<string, Sum> {
    const sums = new Map<string, Sum>();
    for (const total of of.totals) {
        const { group, function: place } = total;
        const state = stateText(total);
        const key = JSON.stringify([group, state, place]);
        const ns = (sums.get(key)?.ns ?? 0) + total.ns;
        sums.set(key, { key, group, state, function: place, ns });
    }
    return sums;
}

/* Whether the timeline moves to the path when it arrives: its window, and its lanes. */
let moves: "" | "lanes" | "all" = "";

/* In the panel of critical paths, or of tasks and regions. What was selected is not on it, unless it
 * is the path of the selected goroutine. */
export function showPath(
    of: string,
    panel: "path" | "requests" = "path",
    what: "lanes" | "all" = "all",
): void {
    if (!of.startsWith("goroutine=")) leaveFinding();
    moves = what;
    why.value = of;
    tab.value = panel;
    kind.value = "goroutine";
}

export function named(id: number, group = ""): string {
    const name = shortName(group);
    return `${term("task_id")}${id}${name ? ` ${name}` : ""}`;
}

/* "task 1 round, which ended in G1 main.main" */
function whose(of: Path): string {
    const [, wanted = ""] = why.value.split(/=(.*)/s);
    const last = of.segments.find((segment) => segment.goroutine === of.goroutine);
    const by = of.goroutine === null ? "" : named(of.goroutine, last?.group);
    if (of.of === "goroutine") return by;
    const what =
        of.of === "task"
            ? `task ${of.task} ${of.name ?? ""}`
            : of.of === "region"
              ? `region ${wanted || (of.name ?? "")}`
              : range.value
                ? "the selected range"
                : "the whole trace";
    return by ? `${what.trim()}, which ended in ${by}` : what.trim();
}

/*
 * The query of `trail why`: for a task or region all of it, and for others too if it `isWhole`;
 * else within the selected range; if empty, the range, or the longest task or region.
 */
export function queryOf(of: string, isWhole = false): Query {
    const [name, value] = of.split(/=(.*)/s);
    const limit = MOST_SEGMENTS;
    if (name === "task" || name === "region" || isWhole) return { [name]: value, limit };
    const what = name ? { [name]: value } : range.value ? { window: 1 } : {};
    return { ...window("why"), ...what, limit };
}

/* Lets lanes come first, in this order; more of them would leave no room for others. */
const MOST_LEADS = 12;
export function leadWith(first: number[]): void {
    leads.value = [...new Set(first)].slice(0, MOST_LEADS);
}

/* Draws a path over the lanes while the component is mounted. */
export function useOverLanes(asked: Signal<Answer<Path>>): void {
    useSignalEffect(() => {
        const { state, value } = asked.value;
        const segments = state === "good" && value?.segments ? segmentsOf(value) : [];
        path.value = segments;
        if (moves && segments.length > 0 && value) {
            leadWith(segments.map((segment) => segment.lane));
            if (moves === "all")
                showRange({
                    from: value.begin_ns - value.origin_ns,
                    to: value.end_ns - value.origin_ns,
                });
            moves = "";
            void reveal(segments[segments.length - 1].lane);
        }
        return () => {
            path.value = [];
        };
    });
}

function lengthOf(of: Segment): number {
    return of.end_ns - of.begin_ns;
}

/* Says what a table of the longest segments leaves out, and how to see it. */
function LeftOut(props: { of: Path }) {
    const { of } = props;
    const many = of.all - of.segments.length;
    if (many <= 0) return null;
    const shown = of.segments.reduce((sum, segment) => sum + lengthOf(segment), 0);
    return (
        <p class="warn">
            The {count(of.segments.length)} longest of {count(of.all)} steps. {count(many)} shorter
            ones, {duration(of.end_ns - of.begin_ns - shown)} in all, are left out: select a range
            and open its critical path to see them.
        </p>
    );
}

export function PathTable(props: { of: Path }) {
    return (
        <>
            <LeftOut of={props.of} />
            <Segments of={props.of} />
        </>
    );
}

function Segments(props: { of: Path }) {
    const { of } = props;
    const origin = of.origin_ns;
    /* Digits such that the starts of consecutive steps differ. */
    const step = of.segments.reduce((least, one) => Math.min(least, lengthOf(one)), 1e9) / 10;
    return (
        <Table
            name="critical path"
            columns={[
                {
                    title: "at",
                    value: (row) => row.begin_ns - origin,
                    unit: "ns",
                    text: (row) => timeText(row.begin_ns - origin, Math.max(1, step)),
                },
                { title: "duration", value: lengthOf, unit: "ns" },
                { title: "{task}", value: (row) => named(row.goroutine, row.group) },
                { title: "state", value: stateText },
                { title: "in", value: (row) => shortName(row.function ?? "") },
                { title: "then", value: wakeText },
            ]}
            rows={inOrder(of)}
            empty={inWords(
                "There is no critical path: the trace has no task or region. Select a range, or a {task}.",
            )}
            onRow={(row) => jump(row.goroutine, row.begin_ns - origin, row.end_ns - origin)}
        />
    );
}

export function PathPanel() {
    const asked = useRun<Path>("why", () => queryOf(why.value), "whole");
    useOverLanes(asked);
    const answer = asked.value;
    const of = answer.state === "good" ? answer.value : undefined;
    if (!of?.segments) return <Waiting answer={answer} />;
    const origin = of.origin_ns;
    const step = Math.max(1, (of.end_ns - of.begin_ns) / 1000);
    return (
        <div>
            <h2>Critical path of {whose(of)}</h2>
            <p>
                {duration(of.end_ns - of.begin_ns)}, from {timeText(of.begin_ns - origin, step)} to{" "}
                {timeText(of.end_ns - origin, step)}
                {of.complete === false && ", not all of it in the trace"}. Each row was what the end
                had to wait for at that time.
            </p>
            <LargestParts of={of} />
            <PathTable of={of} />
        </div>
    );
}

function inOrder(of: Path): Segment[] {
    return [...of.segments].sort((a, b) => a.begin_ns - b.begin_ns);
}

export function segmentsOf(of: Path): { lane: number; begin: number; end: number }[] {
    return inOrder(of).flatMap((segment) => {
        const begin = segment.begin_ns - of.origin_ns;
        const lane = laneOf(segment.goroutine, begin);
        return lane === null ? [] : [{ lane, begin, end: segment.end_ns - of.origin_ns }];
    });
}
