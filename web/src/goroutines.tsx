/* The panels of the summary, of goroutines, and of start functions: the same figures as on the command line. */
import { useSignal } from "@preact/signals";
import { Findings } from "./findings";
import { First, queryOf, sortedBy, useFirst } from "./first";
import {
    count,
    duration,
    eventsText,
    NO_NAME,
    percent,
    sentence,
    shortName,
    withSign,
} from "./format";
import { Tiles } from "./overview";
import { Waiting } from "./panel";
import { showPath } from "./path";
import { jump, useRun } from "./run";
import { ALL_FOLDED, foldRuntime, RuntimeLine } from "./runtime";
import { filter, kind, range, scroll, status } from "./state";
import { type Finding, nothingFound, type Tile } from "./summary";
import { type Column, Table } from "./table";
import { mostly } from "./waits";
import { inWords, term } from "./words";

/* MARK: Summary */

interface Summary {
    origin_ns: number;
    begin_ns: number;
    end_ns: number;
    events: number;
    goroutines: number;
    goroutines_alive: number;
    findings: Finding[];
    largest: string;
    tiles?: Tile[];
    activity: {
        procs: number;
        running_ns: number;
        ready_ns: number;
        available_ns: number;
        idle_work_ns: number;
        idle_lock_ns: number;
        idle_nothing_ns: number;
        lost_ns?: number;
    };
}

/* For a trace or range with nothing to sum up. */
function NothingRead(props: { events: number }) {
    const error = status.value?.error;
    const events = eventsText(props.events);
    return (
        <div>
            <p class="empty">
                {inWords(
                    range.value
                        ? `No {task} in this range (${events}). Select a longer one.`
                        : error
                          ? `No {task} could be read: the trace is damaged after ${events}. Record it again, or let the program stop the trace before it ends.`
                          : `No {task} in this trace (${events}): it ended before anything ran. Record for longer.`,
                )}
            </p>
        </div>
    );
}

export function SummaryPanel() {
    const answer = useRun<Summary>("summary", () => ({})).value;
    const of = answer.value;
    if (!of?.activity) return <Waiting answer={answer} />;
    const { activity } = of;
    if (of.goroutines === 0) return <NothingRead events={of.events} />;
    const share = (ns: number) => sentence(percent(ns, activity.available_ns));
    return (
        <div>
            <p>
                {duration(of.end_ns - of.begin_ns)}, {activity.procs}{" "}
                {term(activity.procs === 1 ? "slot" : "slots")}, {count(of.goroutines)}{" "}
                {term(of.goroutines === 1 ? "task" : "tasks")} ({count(of.goroutines_alive)} alive
                at the end), {count(of.events)} events. Running{" "}
                {(activity.running_ns / Math.max(1, of.end_ns - of.begin_ns)).toFixed(2)} of{" "}
                {activity.procs} on average.
                {activity.available_ns > 0 && (
                    <>
                        {" "}
                        {inWords("{Slots_idle}")}: {share(activity.idle_nothing_ns)} nothing to do,{" "}
                        {share(activity.idle_lock_ns)} waiting for locks,{" "}
                        {share(activity.idle_work_ns)} although work was ready.
                    </>
                )}
            </p>
            {of.findings.length === 0 && (
                <p>
                    {nothingFound(of)} The largest figures: {withSign(of.largest)}.
                </p>
            )}
            <Findings findings={of.findings} origin={of.origin_ns} />
            {of.tiles && <Tiles of={of.tiles} origin={of.origin_ns} most={of.tiles.length} />}
        </div>
    );
}

/* MARK: Goroutines and functions */

interface Times {
    name: string;
    exec_ns: number;
    sched_wait_ns: number;
    syscall_ns: number;
    total_ns: number;
    block_ns: Record<string, number>;
    /* By kind, if kinds are recorded. */
    waits?: { wait_kind?: string; reason: string; ns: number }[];
}

interface GoroutineRow extends Times {
    id: number;
    creation_ns: number;
}

function blocked(row: Times): number {
    return Object.values(row.block_ns).reduce((sum, ns) => sum + ns, 0);
}

const times: Column<Times>[] = [
    { title: "total", value: (row) => row.total_ns, unit: "ns" },
    { title: "running", value: (row) => row.exec_ns, unit: "ns" },
    { title: "ready", value: (row) => row.sched_wait_ns, unit: "ns" },
    { title: "syscall", value: (row) => row.syscall_ns, unit: "ns" },
    { title: "waiting", value: blocked, unit: "ns" },
    { title: "mostly for", value: mostly },
];

/* If there are more goroutines, only the first ones by a column are requested: an answer is at most
 * 64 MB. */
const MANY = 20000;
const FIRST = 10000;

/* The sort orders of `trail goroutines --sort`, with the titles of the columns. */
const sorts = [
    ["total", "total"],
    ["exec", "running"],
    ["sched-wait", "ready"],
    ["syscall", "syscall"],
    ["block", "waiting"],
] as const;

export function GoroutinesPanel() {
    const words = useSignal("");
    const first = useFirst(FIRST, sorts);
    const isMany = (status.value?.goroutines ?? 0) > MANY;
    const answer = useRun<{ origin_ns: number; all: number; goroutines: GoroutineRow[] }>(
        "goroutines",
        () => (isMany ? queryOf(first) : {}),
    ).value;
    const of = answer.value;
    if (!of?.goroutines) return <Waiting answer={answer} />;
    const columns: Column<GoroutineRow>[] = [
        { title: "{task}", value: (row) => row.id, unit: "id" },
        { title: "start function", value: (row) => shortName(row.name) || NO_NAME },
        ...times,
    ];
    const by = sortedBy(first);
    const { rows, ofRuntime } = foldRuntime(of.goroutines, (row) => row.name, words.value);
    return (
        <div>
            <OfRuntime many={ofRuntime.length} one="{task}" />
            {isMany && <First shown={of.goroutines.length} all={of.all} rows={first} />}
            <Table
                key={by}
                name="goroutines"
                columns={columns}
                rows={rows}
                sort={by}
                words={words}
                empty={ofRuntime.length > 0 ? ALL_FOLDED : inWords("No {task} is there.")}
                onWords={isMany ? first.onWords : undefined}
                onWhy={(row) => showPath(`goroutine=${row.id}`)}
                onRow={(row) => {
                    const from = Math.max(0, row.creation_ns - of.origin_ns);
                    jump(row.id, from, from + row.total_ns);
                }}
            />
        </div>
    );
}

function OfRuntime(props: { many: number; one: string }) {
    const { many, one } = props;
    return (
        <RuntimeLine what={many ? `${count(many)} ${inWords(one)}${many === 1 ? "" : "s"}` : ""} />
    );
}

interface GroupRow extends Times {
    count: number;
}

export function FunctionsPanel() {
    const words = useSignal("");
    const answer = useRun<{ groups: GroupRow[] }>("goroutines", () => ({ groups: 1 })).value;
    const of = answer.value;
    if (!of?.groups) return <Waiting answer={answer} />;
    const columns: Column<GroupRow>[] = [
        { title: "start function", value: (row) => shortName(row.name) || NO_NAME },
        { title: "{tasks}", value: (row) => row.count, unit: "number" },
        ...times,
    ];
    const { rows, ofRuntime } = foldRuntime(of.groups, (row) => row.name, words.value);
    return (
        <div>
            <OfRuntime many={ofRuntime.length} one="start function" />
            <Table
                name="functions"
                columns={columns}
                rows={rows}
                sort="running"
                words={words}
                empty={ofRuntime.length > 0 ? ALL_FOLDED : inWords("No {task} is there.")}
                onRow={(row) => {
                    filter.value = shortName(row.name);
                    kind.value = "goroutine";
                    scroll.value = 0;
                }}
            />
        </div>
    );
}
