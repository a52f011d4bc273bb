/* The other analyses as tables: garbage collections, threads, Ps. */
import { useSignal } from "@preact/signals";
import { Choice } from "./choice";
import { Waiting } from "./panel";
import { jump, useRun } from "./run";
import { kind, scroll } from "./state";
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
     * time. */
    place?: (row: Row) => [number | null, number, number];
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
});
const id = (title: string, name: string): Column<Row> => ({
    title,
    value: (row) => number(row, name),
    unit: "id",
});
const length = (row: Row, from: string, to: string) =>
    Math.max(0, number(row, to) - number(row, from));

const analyses: Analysis[] = [
    {
        command: "gc",
        title: "collections",
        rows: "cycles",
        sort: "duration",
        columns: [
            { title: "duration", value: (row) => length(row, "begin_ns", "end_ns"), unit: "ns" },
            size("heap at begin", "heap_at_begin_bytes"),
            size("heap at end", "heap_at_end_bytes"),
            plain("assists", "assists"),
            ns("assisting", "assist_ns"),
            ns("sweeping", "sweep_ns"),
        ],
        place: (row) => [null, number(row, "begin_ns"), number(row, "end_ns")],
        empty: "No garbage collections.",
    },
    {
        command: "gc",
        title: "stop-the-world pauses",
        rows: "pauses",
        sort: "duration",
        columns: [
            { title: "why", value: text("name") },
            { title: "duration", value: (row) => length(row, "begin_ns", "end_ns"), unit: "ns" },
            id("{task}", "goroutine"),
        ],
        place: (row) => [number(row, "goroutine"), number(row, "begin_ns"), number(row, "end_ns")],
        empty: "No stop-the-world pauses.",
    },
    {
        command: "threads",
        title: "threads",
        rows: "threads",
        sort: "running",
        columns: [
            id("{machine_column}", "id"),
            ns("running", "running_ns"),
            ns("syscall", "syscall_ns"),
            ns("idle", "idle_ns"),
            plain("runs", "runs"),
            plain("events", "events"),
        ],
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
    const rows = (value[of.rows] as Row[] | undefined) ?? [];
    return (
        <Table
            name={of.title}
            columns={of.columns}
            rows={rows}
            sort={of.sort}
            empty={inWords(of.empty)}
            onRow={(row) => {
                const origin = Number(value.origin_ns ?? 0);
                if (of.place) {
                    const [id, from, to] = of.place(row);
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
