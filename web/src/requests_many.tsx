/*
 * Tasks and regions of a trace that has very many: first the sums and the median of each name, then
 * the slowest of one name, and what the selected one consists of.
 */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { First, queryOf, sortedBy, useFirst } from "./first";
import type { Bar } from "./histogram";
import { Waiting } from "./panel";
import {
    type Answers,
    type Group,
    groupTitle,
    type Member,
    memberOfRegion,
    memberOfTask,
    type Origin,
    type Region,
    slowestFirst,
    type Task,
} from "./requests";
import { byNumber, Chosen, GroupChoice, Hint, List, NoRequests } from "./requests_chosen";
import { useRun } from "./run";
import { end, why } from "./state";

/* If there are more tasks and regions than this, only the names and the first members of one name
 * are requested. */
export const MANY = 20000;
const FIRST = 10000;

/* The number of regions drawn for the selected one and for the median, longest first. */
const MOST_REGIONS = 5000;
const none: Region[] = [];

type Histograms = { max_ns: number; buckets: [number, number, number][] };

interface TaskGroup {
    name: string;
    count: number;
    took: Histograms;
    median: Task | null;
}

interface RegionGroup {
    name: string;
    count: number;
    total_ns: number;
    distributions: { total: Histograms };
    median: Region | null;
}

/* Without its members, which `command` lists. */
interface Name extends Group {
    command: "tasks" | "regions";
    name: string;
}

function nameOf(
    command: Name["command"],
    { name, count: many }: { name: string; count: number },
    { max_ns, buckets }: Histograms,
    median: Member | undefined,
): Name {
    const key = groupTitle(command === "tasks" ? "task" : "region", name);
    return {
        command,
        name,
        key,
        title: key,
        count: many,
        buckets,
        median,
        longest: max_ns,
        members: [],
    };
}

function namesOf(tasks: TaskGroup[], regions: RegionGroup[], origin: Origin): Name[] {
    const sorted = [...regions].sort(
        (a, b) => Number(a.name === "") - Number(b.name === "") || b.total_ns - a.total_ns,
    );
    return [
        ...tasks.map((of) =>
            nameOf("tasks", of, of.took, of.median ? memberOfTask(of.median, origin) : undefined),
        ),
        ...sorted.map((of) =>
            nameOf(
                "regions",
                of,
                of.distributions.total,
                of.median ? memberOfRegion(of.median, origin) : undefined,
            ),
        ),
    ];
}

/* The sort orders of `trail regions --sort`, with the titles of the columns. */
const sorts = [
    ["total", "duration"],
    ["exec", "running"],
    ["sched-wait", "ready"],
    ["block", "waiting"],
    ["syscall", "syscall"],
] as const;

/* The tasks that the selected one and the median lead to. */
function relatives(members: (Member | undefined)[]): string {
    const ids = members.flatMap((one) =>
        one?.task ? [one.task.id, one.task.parent ?? 0, ...one.task.children] : [],
    );
    return [...new Set(ids.filter((id) => id > 0))].join(",");
}

function regionsQuery(of: Member, median: Member | undefined) {
    const both = median ? [of, median] : [of];
    const ids = both.map(({ task, region }) => task?.id ?? region?.goroutine).join(",");
    return { [of.task ? "task" : "goroutine"]: ids, limit: MOST_REGIONS };
}

/* Members shown so far, by `why`: selecting one of them needs no request. */
type Seen = Map<string, Member>;

function note(seen: Seen, members: Iterable<Member>): void {
    for (const member of members) seen.set(member.why, member);
}

interface Of {
    origin: Origin;
    seen: Seen;
}

function ChosenOfMany(props: Of & { of: Member; group: Group }) {
    const { of, group, origin, seen } = props;
    const around = relatives([of, group.median]);
    const regions = useRun<{ regions: Region[] }>(
        "regions",
        () => regionsQuery(of, group.median),
        "whole",
    ).value;
    const tasks = useRun<{ tasks?: Task[] }>(
        "tasks",
        () => (around ? { task: around } : { groups: 1 }),
        "whole",
    ).value;
    const known = tasks.value?.tasks;
    const byId = useMemo(() => {
        const members = (known ?? []).map((task) => memberOfTask(task, origin));
        note(seen, members);
        return byNumber(members);
    }, [known, origin, seen]);
    /* Having none is an error. */
    const its = regions.state === "bad" ? none : regions.value?.regions;
    const answers = useMemo<Answers | null>(
        () => (its ? { ...origin, tasks: [], regions: its } : null),
        [its, origin],
    );
    if (!answers) return <Waiting answer={regions} />;
    return <Chosen of={of} group={group} answers={answers} tasks={byId} />;
}

function FirstOfMany(props: Of & { of: Name; pointed?: Member }) {
    const { of, origin, seen, pointed } = props;
    const isTask = of.command === "tasks";
    const first = useFirst(FIRST, isTask ? undefined : sorts);
    const bar = useSignal<Bar | null>(null);
    const answer = useRun<{ all: number; tasks?: Task[]; regions?: Region[] }>(
        of.command,
        () => ({
            name: of.name,
            ...queryOf(first),
            ...(bar.value && {
                longer: `${Math.floor(bar.value.from)}ns`,
                shorter: `${Math.ceil(bar.value.to)}ns`,
            }),
        }),
        "whole",
    ).value;
    const { value } = answer;
    const members = useMemo(
        () =>
            slowestFirst([
                ...(value?.tasks ?? []).map((task) => memberOfTask(task, origin)),
                ...(value?.regions ?? []).map((region) => memberOfRegion(region, origin)),
            ]),
        [value, origin],
    );
    useEffect(() => note(seen, members), [seen, members]);
    const group = { ...of, members };
    const isChosen = (member: Member | undefined) => member?.why === why.value;
    const chosen = members.find(isChosen) ?? [of.median, pointed].find(isChosen);
    if (!value) return <Waiting answer={answer} />;
    return (
        <>
            <div class={chosen ? "requests" : ""}>
                <List
                    of={group}
                    bar={bar}
                    isTask={isTask}
                    sort={sortedBy(first)}
                    onWords={first.onWords}
                >
                    <First
                        shown={members.length}
                        all={value.all}
                        rows={first}
                        by={isTask ? "by duration" : undefined}
                    />
                </List>
                {chosen && (
                    <ChosenOfMany
                        key={chosen.why}
                        of={chosen}
                        group={group}
                        origin={origin}
                        seen={seen}
                    />
                )}
            </div>
            {!chosen && <Hint />}
        </>
    );
}

/* The task that `why` is about if it has not been shown, for example from a link. */
function usePointed(origin: Origin, seen: Seen): Member | undefined {
    const known = seen.get(why.value);
    const answer = useRun<{ tasks?: Task[] }>(
        "tasks",
        () => {
            const id = seen.has(why.value) ? null : /^task=(\d+)$/.exec(why.value);
            return id ? { task: id[1] } : { groups: 1 };
        },
        "whole",
    ).value;
    const task = answer.state === "good" ? answer.value?.tasks?.[0] : undefined;
    return known ?? (task && memberOfTask(task, origin));
}

function isOfName({ command, name }: Name, pointed: Member | undefined): boolean {
    if (command === "tasks") return pointed?.task?.name === name;
    return why.value.replace(/#\d+$/, "") === `region=${name}`;
}

export function ManyRequests() {
    const tasks = useRun<{ origin_ns: number; groups: TaskGroup[] }>(
        "tasks",
        () => ({ groups: 1 }),
        "whole",
    ).value;
    const regions = useRun<{ groups: RegionGroup[] }>(
        "regions",
        () => ({ groups: 1 }),
        "whole",
    ).value;
    const wanted = useSignal("");
    const seen = useMemo<Seen>(() => new Map(), []);
    const [taskGroups, regionGroups] = [tasks.value?.groups, regions.value?.groups];
    const origin = useMemo(
        () => ({ origin_ns: tasks.value?.origin_ns ?? 0, end: end.peek() }),
        [tasks.value],
    );
    const names = useMemo(
        () => (taskGroups && regionGroups ? namesOf(taskGroups, regionGroups, origin) : []),
        [taskGroups, regionGroups, origin],
    );
    const pointed = usePointed(origin, seen);
    if (!taskGroups || !regionGroups)
        return <Waiting answer={tasks.state === "bad" ? tasks : regions} />;
    const name =
        names.find(({ key }) => key === wanted.value) ??
        names.find((of) => isOfName(of, pointed)) ??
        names[0];
    if (!name) return <NoRequests />;
    return (
        <div>
            <GroupChoice groups={names} value={name.key} wanted={wanted} />
            <FirstOfMany key={name.key} of={name} origin={origin} seen={seen} pointed={pointed} />
        </div>
    );
}
