/*
 * The panel of the critical path (`trail why`): of what it is, and its segments in time order, which are also drawn over
 * the lanes.
 */
import { useSignalEffect } from "@preact/signals";
import { duration, shortName } from "./format";
import { reveal } from "./lanes";
import { Waiting } from "./panel";
import { timeText } from "./ruler";
import { jump, laneOf, useRun } from "./run";
import { kind, path, range, showRange, tab, why } from "./state";
import { Table } from "./table";
import { waitName } from "./waits";
import { inWords, term } from "./words";

interface Segment {
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
    /* The goroutine that the end of the segment woke, what that had waited for, and how long the lock had been held. */
    wakes?: number;
    awaited?: string;
    awaited_kind?: string;
    awaited_object?: string;
    held_ns?: number;
}

interface Path {
    origin_ns: number;
    of: string;
    task?: number;
    name?: string;
    goroutine: number | null;
    complete?: boolean;
    begin_ns: number;
    end_ns: number;
    segments: Segment[];
}

function stateText(of: Segment): string {
    const what = waitName(of);
    return of.state === "blocked" && what ? `blocked: ${what}` : of.state;
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

/* Whether the timeline is to move to the path when that arrives. */
let moves = false;

export function showPath(of: string): void {
    moves = true;
    why.value = of;
    tab.value = "path";
    kind.value = "goroutine";
}

function named(id: number, group = ""): string {
    const name = shortName(group);
    return `${term("task_id")}${id}${name ? ` ${name}` : ""}`;
}

/* "task 1 round, which ended in G1 main.main" */
function whose(of: Path): string {
    const [, wanted = ""] = why.value.split(/=(.*)/s);
    const last = of.segments.find((segment) => segment.goroutine === of.goroutine);
    const by = of.goroutine === null ? "" : named(of.goroutine, last?.group);
    if (of.of === "goroutine") return `${inWords("{task}")} ${by}`;
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

export function PathPanel() {
    const asked = useRun<Path>("why", () => {
        const [name, value] = why.value.split(/=(.*)/s);
        return name ? { [name]: value } : range.value ? { window: 1 } : {};
    });
    useSignalEffect(() => {
        const { state, value } = asked.value;
        const segments = state === "good" && value?.segments ? segmentsOf(value) : [];
        path.value = segments;
        if (moves && segments.length > 0 && value) {
            moves = false;
            showRange({
                from: value.begin_ns - value.origin_ns,
                to: value.end_ns - value.origin_ns,
            });
            reveal(segments[segments.length - 1].lane);
        }
        return () => {
            path.value = [];
        };
    });
    const answer = asked.value;
    const of = answer.state === "good" ? answer.value : undefined;
    if (!of?.segments) return <Waiting answer={answer} />;
    const origin = of.origin_ns;
    const step = Math.max(1, (of.end_ns - of.begin_ns) / 1000);
    const rows = inOrder(of);
    return (
        <div>
            <h2>Critical path of {whose(of)}</h2>
            <p>
                {duration(of.end_ns - of.begin_ns)}, from {timeText(of.begin_ns - origin, step)} to{" "}
                {timeText(of.end_ns - origin, step)}
                {of.complete === false && ", not all of it in the trace"}. Each row was what the end
                had to wait for at that time.
            </p>
            <Table
                name="critical path"
                columns={[
                    {
                        title: "at",
                        value: (row) => row.begin_ns - origin,
                        unit: "ns",
                        text: (row) => timeText(row.begin_ns - origin, step),
                    },
                    { title: "duration", value: (row) => row.end_ns - row.begin_ns, unit: "ns" },
                    { title: "{task}", value: (row) => named(row.goroutine, row.group) },
                    { title: "state", value: stateText },
                    { title: "in", value: (row) => shortName(row.function ?? "") },
                    { title: "then", value: wakeText },
                ]}
                rows={rows}
                empty={inWords(
                    "There is no critical path: the trace has no task or region. Select a range, or a {task}.",
                )}
                onRow={(row) => jump(row.goroutine, row.begin_ns - origin, row.end_ns - origin)}
            />
        </div>
    );
}

function inOrder(of: Path): Segment[] {
    return [...of.segments].sort((a, b) => a.begin_ns - b.begin_ns);
}

function segmentsOf(of: Path): { lane: number; begin: number; end: number }[] {
    return inOrder(of).flatMap((segment) => {
        const begin = segment.begin_ns - of.origin_ns;
        const lane = laneOf(segment.goroutine, begin);
        return lane === null ? [] : [{ lane, begin, end: segment.end_ns - of.origin_ns }];
    });
}
