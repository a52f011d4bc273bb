/*
 * The panel of tasks and regions: how long those of one name took, and of a chosen one where its time went, beside the
 * median one of its name.
 */
import { computed, signal, useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Choice } from "./choice";
import { count, duration, percent, shortName } from "./format";
import { type Bar, Histogram } from "./histogram";
import { Waiting } from "./panel";
import { named, type Path, PathTable, queryOf, type Sum, sumsOf, useOverLanes } from "./path";
import {
    type Answers,
    type Group,
    groupsOf,
    type Log,
    lengthOf,
    type Member,
    medianOf,
    type Region,
    type Task,
    waitsIn,
} from "./requests";
import { timeText } from "./ruler";
import { jump, useRun } from "./run";
import { end, kind, range, showRange, status, why } from "./state";
import { type Column, Table } from "./table";
import { Waterfall } from "./waterfall";
import { inWords, term } from "./words";

/* Larger traces are compared when that is asked for: each comparison reads the trace once more. */
const SMALL = 64 << 20;
const wish = signal<boolean | null>(null);
const compares = computed(() => wish.value ?? (status.value?.size_bytes ?? 0) < SMALL);

function choose(member: Member): void {
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
    unit: "number",
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
    { title: "{task}", value: ({ region }) => region?.goroutine ?? 0, unit: "number" },
    regionColumn("running", (region) => region.exec_ns),
    regionColumn("ready", (region) => region.sched_wait_ns),
    regionColumn("waiting", (region) => waitsIn(region).reduce((sum, { ns }) => sum + ns, 0)),
    regionColumn("syscall", (region) => region.syscall_ns),
];

function List(props: { of: Group; median: Member | undefined }) {
    const { of, median } = props;
    const bar = useSignal<Bar | null>(null);
    const buckets = of.members.map((member) => {
        const ns = lengthOf(member);
        return [ns, ns + 1, 1] as const;
    });
    const within = bar.value;
    const rows = within
        ? of.members.filter((one) => lengthOf(one) >= within.from && lengthOf(one) < within.to)
        : of.members;
    const isTask = of.members[0]?.task !== undefined;
    return (
        <section>
            <Histogram
                buckets={buckets}
                title={of.title}
                onBar={(chosen) => {
                    bar.value = bar.value?.from === chosen.from ? null : chosen;
                }}
            />
            <p>
                {count(of.members.length)}; median{" "}
                {median ? duration(lengthOf(median)) : "not known"}, longest{" "}
                {duration(lengthOf(of.members[0]))}
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
            <Table
                key={of.key}
                name={of.title}
                columns={[
                    taskNumber,
                    ...commonColumns(median),
                    ...(isTask ? taskColumns : regionColumns),
                ]}
                rows={rows}
                sort="duration"
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

/* What the critical paths consist of; those of the median that the other does not have as well. */
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
        { title: "share", value: (row) => percent(row.ns, whole) },
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

/* The median of the group below the chosen one, on the same scale. */
function Beside(props: Shown & { median: Member; path: Path }) {
    const { of, median, path } = props;
    const answer = useRun<Path>("why", () => queryOf(median.why), "whole").value;
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

function Head(props: Shown & { median: Member | undefined }) {
    const { of, group, median, tasks } = props;
    const at = group.members.indexOf(of);
    const parent = of.task?.parent ? tasks.get(of.task.parent) : undefined;
    const slower = group.members[at - 1];
    const faster = group.members[at + 1];
    const than = times(of, median);
    return (
        <>
            <h2>
                {of.title} {of.task ? of.name : ""}: {duration(lengthOf(of))}
                {than && median !== of && `, ${than} the median`}
                {!of.complete && ", not all of it in the trace"}
            </h2>
            <div class="buttons">
                <button type="button" disabled={!slower} onClick={() => slower && choose(slower)}>
                    ← Slower
                </button>
                <span>
                    {count(at + 1)} of {count(group.members.length)}
                </span>
                <button type="button" disabled={!faster} onClick={() => faster && choose(faster)}>
                    Faster →
                </button>
                {median && median !== of && (
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
                        Part of {parent.title} {parent.name}
                    </button>
                )}
            </div>
        </>
    );
}

function Chosen(props: Shown) {
    const { of } = props;
    const asked = useRun<Path>("why", () => queryOf(of.why), "whole");
    useOverLanes(asked);
    const answer = asked.value;
    const path = answer.state === "good" ? answer.value : undefined;
    const median = medianOf(props.group);
    const other = compares.value && median !== of ? median : undefined;
    return (
        <section class="request">
            <Head {...props} median={median} />
            {!path?.segments ? (
                <Waiting answer={answer} />
            ) : (
                <>
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

/* MARK: The panel */

function Groups(props: { answers: Answers }) {
    const { answers } = props;
    const groups = useMemo(() => groupsOf(answers), [answers]);
    const tasks = useMemo(
        () =>
            new Map(
                groups.flatMap(({ members }) =>
                    members.flatMap((one) => (one.task ? [[one.task.id, one] as const] : [])),
                ),
            ),
        [groups],
    );
    const wanted = useSignal("");
    const holds = (group: Group) => group.members.some((member) => member.why === why.value);
    const named = groups.find(({ key }) => key === wanted.value);
    const group = named ?? groups.find(holds) ?? groups[0];
    const of = group?.members.find((member) => member.why === why.value);
    if (!group)
        return (
            <p class="empty">
                The trace has no tasks and no regions. In Go: trace.NewTask and trace.WithRegion; in
                C: trail_task_begin and trail_region_begin.
            </p>
        );
    return (
        <div>
            <Choice
                label="Those of"
                value={group.key}
                options={groups.map(
                    ({ key, title, members }) =>
                        [key, `${title} (${count(members.length)})`] as const,
                )}
                onChoose={(key) => {
                    wanted.value = key;
                }}
            />
            <div class={of ? "requests" : ""}>
                <List key={group.key} of={group} median={medianOf(group)} />
                {of && (
                    <Chosen key={of.why} of={of} group={group} answers={answers} tasks={tasks} />
                )}
            </div>
            {!of && (
                <p class="faint">
                    {inWords(
                        "A row shows where the time went: what its {tasks} waited for, and who woke them.",
                    )}
                </p>
            )}
        </div>
    );
}

export function RequestsPanel() {
    const tasks = useRun<{ origin_ns: number; tasks: Task[] }>("tasks", () => ({}), "whole").value;
    const regions = useRun<{ regions: Region[] }>("regions", () => ({}), "whole").value;
    const answers = useMemo<Answers | null>(
        () =>
            tasks.value?.tasks && regions.value?.regions
                ? {
                      origin_ns: tasks.value.origin_ns,
                      tasks: tasks.value.tasks,
                      regions: regions.value.regions,
                      end: end.peek(),
                  }
                : null,
        [tasks.value, regions.value],
    );
    if (!answers) return <Waiting answer={tasks.state === "bad" ? tasks : regions} />;
    return <Groups answers={answers} />;
}
