/* The members of a group of tasks or regions as a list, and where the time of the selected one
 * went, next to the median one. */
import { computed, type Signal, signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Choice } from "./choice";
import { count, duration, percent, shortName } from "./format";
import { type Bar, Histogram } from "./histogram";
import { Waiting } from "./panel";
import {
    LargestParts,
    named,
    type Path,
    PathTable,
    queryOf,
    type Sum,
    sumsOf,
    useOverLanes,
} from "./path";
import {
    type Answers,
    fullTitle,
    type Group,
    type Log,
    lengthOf,
    type Member,
    type Region,
    waitsIn,
} from "./requests";
import { timeText } from "./ruler";
import { jump, useRun } from "./run";
import { leaveFinding } from "./select";
import { end, kind, range, showRange, status, why } from "./state";
import { type Column, Table } from "./table";
import { Waterfall } from "./waterfall";
import { inWords, term } from "./words";

/* Larger traces are compared only on request, because each comparison reads the trace again. */
const SMALL = 64 << 20;
const wish = signal<boolean | null>(null);
const compares = computed(() => wish.value ?? (status.value?.size_bytes ?? 0) < SMALL);

function choose(member: Member): void {
    leaveFinding();
    kind.value = "goroutine";
    why.value = member.why;
    range.value = { from: member.from, to: Math.max(member.to, member.from + 1) };
    showRange(member);
}

/* "4.2x" */
function times(of: Member, median: Member | undefined): string {
    const usual = median ? lengthOf(median) : 0;
    return usual > 0 ? `${Number((lengthOf(of) / usual).toPrecision(2))}×` : "";
}

/* MARK: The list */

function commonColumns(median: Member | undefined): Column<Member>[] {
    const usual = median ? lengthOf(median) : 0;
    return [
        { title: "duration", value: lengthOf, unit: "ns" },
        {
            title: "to the median",
            value: (row) => (usual > 0 ? lengthOf(row) / usual : 0),
            unit: "number",
            text: (row) => times(row, median),
        },
        {
            title: "at",
            value: (row) => row.from,
            unit: "ns",
            text: (row) => timeText(row.from, Math.max(1, end.value / 1e5)),
        },
        { title: "complete", value: (row) => (row.complete ? "yes" : "no") },
    ];
}

const taskNumber: Column<Member> = {
    title: "task",
    value: ({ task, region }) => task?.id ?? region?.task ?? 0,
    unit: "id",
};

const taskColumns: Column<Member>[] = [
    { title: "regions", value: ({ task }) => task?.region_count ?? 0, unit: "number" },
    { title: "logs", value: ({ task }) => task?.logs.length ?? 0, unit: "number" },
    {
        title: "{tasks}",
        value: ({ task }) =>
            (task?.goroutines ?? []).map((id) => `${term("task_id")}${id}`).join(" "),
    },
];

function regionColumn(title: string, of: (region: Region) => number): Column<Member> {
    return { title, value: ({ region }) => (region ? of(region) : 0), unit: "ns" };
}

const regionColumns: Column<Member>[] = [
    { title: "{task}", value: ({ region }) => region?.goroutine ?? 0, unit: "id" },
    regionColumn("running", (region) => region.exec_ns),
    regionColumn("ready", (region) => region.sched_wait_ns),
    regionColumn("waiting", (region) => waitsIn(region).reduce((sum, { ns }) => sum + ns, 0)),
    regionColumn("syscall", (region) => region.syscall_ns),
];

/* `bar`: the bar of the histogram to which the rows are restricted; the list has its own if
 * omitted. */
export function List(props: {
    of: Group;
    bar?: Signal<Bar | null>;
    sort?: string;
    isTask: boolean;
    onWords?: (words: string) => void;
    children?: ComponentChildren;
}) {
    const { of, isTask } = props;
    const own = useSignal<Bar | null>(null);
    const bar = props.bar ?? own;
    const { median } = of;
    const within = bar.value;
    const rows = within
        ? of.members.filter((one) => lengthOf(one) >= within.from && lengthOf(one) < within.to)
        : of.members;
    return (
        <section>
            <Histogram
                buckets={of.buckets}
                title={of.title}
                median={median && lengthOf(median)}
                onBar={(chosen) => {
                    bar.value = bar.value?.from === chosen.from ? null : chosen;
                }}
            />
            <p>
                {count(of.count)}; median {median ? duration(lengthOf(median)) : "not known"},
                longest {duration(of.longest)}
                {within && (
                    <>
                        . Shown: {duration(within.from)} to {duration(within.to - 1)}{" "}
                        <button
                            type="button"
                            onClick={() => {
                                bar.value = null;
                            }}
                        >
                            All
                        </button>
                    </>
                )}
            </p>
            {props.children}
            <Table
                key={`${of.key} ${props.sort}`}
                name={of.title}
                columns={[
                    taskNumber,
                    ...commonColumns(median),
                    ...(isTask ? taskColumns : regionColumns),
                ]}
                rows={rows}
                sort={props.sort ?? "duration"}
                onWords={props.onWords}
                mark={(row) => row.why === why.value}
                empty=""
                onRow={choose}
            />
        </section>
    );
}

/* MARK: The chosen one */

interface Difference extends Sum {
    median: number;
}

/* The sums of both critical paths; of the median's, those that the other does not have. */
function differences(of: Path, median: Path | undefined): Difference[] {
    const sums = sumsOf(of);
    const others = median ? sumsOf(median) : new Map<string, Sum>();
    const mine = [...sums.values()].map((sum) => ({
        ...sum,
        median: others.get(sum.key)?.ns ?? 0,
    }));
    const rest = [...others.values()].filter(({ key }) => !sums.has(key));
    return [...mine, ...rest.map((sum) => ({ ...sum, ns: 0, median: sum.ns }))];
}

function WhereTime(props: { of: Path; median?: Path }) {
    const { of, median } = props;
    const whole = of.end_ns - of.begin_ns;
    const columns: Column<Difference>[] = [
        { title: "state", value: (row) => row.state },
        { title: "in", value: (row) => shortName(row.function ?? "") },
        { title: "{task} of", value: (row) => shortName(row.group) },
        { title: "time", value: (row) => row.ns, unit: "ns" },
        { title: "share", value: (row) => percent(row.ns, whole), unit: "number" },
    ];
    if (median)
        columns.push(
            { title: "median", value: (row) => row.median, unit: "ns" },
            { title: "more than the median", value: (row) => row.ns - row.median, unit: "ns" },
        );
    return (
        <>
            <h3>Where its time went</h3>
            <Table
                key={median ? "compared" : "alone"}
                name="where the time went"
                columns={columns}
                rows={differences(of, median)}
                sort={median ? "more than the median" : "time"}
                empty="The trace does not say."
            />
        </>
    );
}

interface Shown {
    of: Member;
    group: Group;
    answers: Answers;
    /* By the number of their task. */
    tasks: ReadonlyMap<number, Member>;
}

function Fall(props: Shown & { path: Path; scale: number }) {
    const { of, tasks } = props;
    const children = (of.task?.children ?? []).flatMap((id) => tasks.get(id) ?? []);
    return (
        <Waterfall
            of={of}
            answers={props.answers}
            path={props.path}
            begun={children}
            scale={props.scale}
            onChoose={choose}
        />
    );
}

/* The median of the group below the selected one, on the same scale. */
function Beside(props: Shown & { median: Member; path: Path }) {
    const { of, median, path } = props;
    const answer = useRun<Path>("why", () => queryOf(median.why, true), "whole").value;
    const other = answer.state === "good" ? answer.value : undefined;
    const scale = Math.max(lengthOf(of), lengthOf(median));
    return (
        <>
            <Fall {...props} scale={scale} />
            <h3>
                The median{" "}
                <button type="button" class="textlink" onClick={() => choose(median)}>
                    {median.title}
                </button>
                : {duration(lengthOf(median))}
            </h3>
            {other?.segments ? (
                <Fall {...props} of={median} path={other} scale={scale} />
            ) : (
                <Waiting answer={answer} />
            )}
            <WhereTime of={path} median={other?.segments ? other : undefined} />
        </>
    );
}

function Logs(props: { of: Log[]; origin: number }) {
    const { origin } = props;
    return (
        <>
            <h3>Logs</h3>
            <Table
                name="logs"
                columns={[
                    {
                        title: "at",
                        value: (row) => row.time_ns - origin,
                        unit: "ns",
                        text: (row) => timeText(row.time_ns - origin, 1000),
                    },
                    { title: "{task}", value: (row) => named(row.goroutine) },
                    { title: "category", value: (row) => row.category },
                    { title: "message", value: (row) => row.message },
                ]}
                rows={props.of}
                empty=""
                onRow={(row) => jump(row.goroutine, row.time_ns - origin, row.time_ns - origin + 1)}
            />
        </>
    );
}

function Head(props: Shown) {
    const { of, group, tasks } = props;
    const { median } = group;
    /* If there are very many, it may not be among the slowest, which are loaded. */
    const at = group.members.findIndex((member) => member.why === of.why);
    const parent = of.task?.parent ? tasks.get(of.task.parent) : undefined;
    const slower = at < 0 ? undefined : group.members[at - 1];
    const faster = at < 0 ? undefined : group.members[at + 1];
    const than = times(of, median);
    return (
        <>
            <h2>
                {fullTitle(of)}: {duration(lengthOf(of))}
                {than && median?.why !== of.why && `, ${than} the median`}
                {!of.complete && ", not all of it in the trace"}
            </h2>
            <div class="buttons">
                <button type="button" disabled={!slower} onClick={() => slower && choose(slower)}>
                    ← Slower
                </button>
                {at >= 0 && (
                    <span>
                        {count(at + 1)} of {count(group.count)}
                    </span>
                )}
                <button type="button" disabled={!faster} onClick={() => faster && choose(faster)}>
                    Faster →
                </button>
                {median && median.why !== of.why && (
                    <button
                        type="button"
                        aria-pressed={compares.value}
                        onClick={() => {
                            wish.value = !compares.value;
                        }}
                    >
                        Beside the median
                    </button>
                )}
                {parent && (
                    <button type="button" onClick={() => choose(parent)}>
                        Part of {fullTitle(parent)}
                    </button>
                )}
            </div>
        </>
    );
}

export function Chosen(props: Shown) {
    const { of } = props;
    const { median } = props.group;
    const asked = useRun<Path>("why", () => queryOf(of.why, true), "whole");
    useOverLanes(asked);
    const answer = asked.value;
    const path = answer.state === "good" ? answer.value : undefined;
    const other = compares.value && median?.why !== of.why ? median : undefined;
    return (
        <section class="request">
            <Head {...props} />
            {!path?.segments ? (
                <Waiting answer={answer} />
            ) : (
                <>
                    <LargestParts of={path} />
                    {other ? (
                        <Beside key={other.why} {...props} median={other} path={path} />
                    ) : (
                        <>
                            <Fall {...props} path={path} scale={lengthOf(of)} />
                            <WhereTime of={path} />
                        </>
                    )}
                    {of.task && of.task.logs.length > 0 && (
                        <Logs of={of.task.logs} origin={props.answers.origin_ns} />
                    )}
                    <h3>Critical path</h3>
                    <PathTable of={path} />
                </>
            )}
        </section>
    );
}

/* MARK: Around them */

export function NoRequests() {
    return (
        <p class="empty">
            The trace has no tasks and no regions. In Go: trace.NewTask and trace.WithRegion; in C:
            trail_task_begin and trail_region_begin.
        </p>
    );
}

export function Hint() {
    return (
        <p class="faint">
            {inWords(
                "A row shows where the time went: what its {tasks} waited for, and who woke them.",
            )}
        </p>
    );
}

export function GroupChoice(props: {
    groups: { key: string; title: string; count: number }[];
    value: string;
    wanted: Signal<string>;
}) {
    return (
        <Choice
            label="Kind"
            value={props.value}
            options={props.groups.map(
                ({ key, title, count: many }) => [key, `${title} (${count(many)})`] as const,
            )}
            onChoose={(key) => {
                props.wanted.value = key;
            }}
        />
    );
}

export function byNumber(tasks: Member[]): Map<number, Member> {
    return new Map(tasks.flatMap((one) => (one.task ? [[one.task.id, one] as const] : [])));
}
