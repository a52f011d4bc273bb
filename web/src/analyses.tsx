/* The other analyses as tables: garbage collections, threads, Ps. */
import { useSignal } from "@preact/signals";
import { Choice } from "./choice";
import { bytes } from "./format";
import type { Lane } from "./lane_table";
import { laneOf, lanes, laneTitle } from "./lanes";
import { Waiting } from "./panel";
import { timeText } from "./ruler";
import { jump, useRun } from "./run";
import { end, kind, scroll } from "./state";
import { type Column, Table } from "./table";
import { inWords } from "./words";

type Row = Record<string, unknown>;

interface Analysis {
    command: string;
    title: string;
    /* The key of the rows in the answer. */
    rows: string;
    columns: Column<Row>[];
    sort: string;
    /* The target of a row: a goroutine's number (null: none), start and end in the trace's own
     * time, or the timeline's if the answer has no origin; null: the lanes of its kind. */
    place?: (row: Row) => [number | null, number, number] | null;
    empty: string;
}

const number = (row: Row, name: string) => Number(row[name] ?? 0);
const text = (name: string) => (row: Row) => String(row[name] ?? "");
const ns = (title: string, name: string): Column<Row> => ({
    title,
    value: (row) => number(row, name),
    unit: "ns",
});
const plain = (title: string, name: string): Column<Row> => ({
    title,
    value: (row) => number(row, name),
    unit: "number",
});
const size = (title: string, name: string): Column<Row> => ({
    title,
    value: (row) => number(row, name),
    unit: "bytes",
    text: (row) => (row[name] ? bytes(number(row, name)) : "not recorded"),
});
const id = (title: string, name: string): Column<Row> => ({
    title,
    value: (row) => number(row, name),
    unit: "id",
});
/* A time of 0 is not in the trace: something began before it, or has not ended. */
const beginOf = (row: Row) => number(row, "begin_ns") || number(row, "origin_ns");
const endOf = (row: Row) => number(row, "end_ns") || number(row, "origin_ns") + end.value;
const at: Column<Row> = {
    title: "at",
    value: (row) => beginOf(row) - number(row, "origin_ns"),
    unit: "ns",
    text: (row) =>
        row.begin_ns ? timeText(beginOf(row) - number(row, "origin_ns"), 1000) : "before the trace",
};
const length: Column<Row> = {
    title: "duration",
    value: (row) => (row.begin_ns || row.end_ns ? Math.max(0, endOf(row) - beginOf(row)) : 0),
    unit: "ns",
};

/* In traces of trail record, where a thread has a lane of its own. */
function laneOfThread(row: Row): Lane | null {
    const lane = "goroutine" in row ? laneOf(number(row, "goroutine")) : null;
    return lane === null ? null : (lanes.value.get(lane) ?? null);
}

/* "thread 2 flush_index" */
function threadName(row: Row): string {
    const lane = laneOfThread(row);
    return lane ? laneTitle("goroutine", lane) : "";
}

function placeOfThread(row: Row): [number, number, number] | null {
    const lane = laneOfThread(row);
    return lane && [lane.id, lane.begin, lane.end];
}

const analyses: Analysis[] = [
    {
        command: "gc",
        title: "collections",
        rows: "cycles",
        sort: "duration",
        columns: [
            at,
            length,
            size("heap at begin", "heap_at_begin_bytes"),
            size("heap at end", "heap_at_end_bytes"),
            plain("assists", "assists"),
            ns("assisting", "assist_ns"),
            ns("sweeping", "sweep_ns"),
        ],
        place: (row) => [null, beginOf(row), endOf(row)],
        empty: "No garbage collections.",
    },
    {
        command: "gc",
        title: "stop-the-world pauses",
        rows: "pauses",
        sort: "duration",
        columns: [{ title: "why", value: text("name") }, at, length, id("{task}", "goroutine")],
        place: (row) => [number(row, "goroutine"), beginOf(row), endOf(row)],
        empty: "No stop-the-world pauses.",
    },
    {
        command: "threads",
        title: "threads",
        rows: "threads",
        sort: "running",
        columns: [
            { title: "{task}", value: threadName },
            id("{machine_column}", "id"),
            ns("running", "running_ns"),
            ns("syscall", "syscall_ns"),
            ns("idle", "idle_ns"),
            plain("runs", "runs"),
            plain("events", "events"),
        ],
        place: placeOfThread,
        empty: "The trace has no threads: Go before 1.7.",
    },
    {
        command: "procs",
        title: "{slots}",
        rows: "procs",
        sort: "running",
        columns: [
            id("{slot}", "id"),
            ns("running", "running_ns"),
            ns("syscall", "syscall_ns"),
            ns("other", "other_ns"),
            ns("idle", "idle_ns"),
            plain("runs", "runs"),
            plain("released", "taken"),
        ],
        empty: "No {slot} is there.",
    },
];

function One(props: { of: Analysis }) {
    const { of } = props;
    const answer = useRun<Row>(of.command, () => ({})).value;
    if (!answer.value) return <Waiting answer={answer} />;
    const value = answer.value;
    const { origin_ns } = value;
    const rows = ((value[of.rows] as Row[] | undefined) ?? []).map((row) => ({
        origin_ns,
        ...row,
    }));
    return (
        <Table
            name={of.title}
            columns={of.columns}
            rows={rows}
            sort={of.sort}
            empty={inWords(of.empty)}
            onRow={(row) => {
                const origin = Number(value.origin_ns ?? 0);
                const place = of.place?.(row);
                if (place) {
                    const [id, from, to] = place;
                    jump(id, Math.max(0, from - origin), Math.max(0, to - origin));
                } else {
                    kind.value = of.command === "procs" ? "proc" : "thread";
                    scroll.value = 0;
                }
            }}
        />
    );
}

function Tables(props: { of: Analysis[] }) {
    const chosen = useSignal(props.of[0].title);
    const of = props.of.find((one) => one.title === chosen.value) ?? props.of[0];
    return (
        <div>
            <Choice
                label="Table of"
                value={chosen.value}
                options={props.of.map(({ title }) => [title, inWords(title)] as const)}
                onChoose={(title) => {
                    chosen.value = title;
                }}
            />
            <One key={of.title} of={of} />
        </div>
    );
}

export function GcPanel() {
    return <Tables of={analyses.filter(({ command }) => command === "gc")} />;
}

export function ThreadsPanel() {
    return <Tables of={analyses.filter(({ command }) => command !== "gc")} />;
}
