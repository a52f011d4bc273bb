/*
 * Tasks and regions as members of groups of one name, which stand for the requests of a program: the answers of `trail
 * tasks --json` and `trail regions --json`, slowest first.
 */

import { NO_NAME } from "./format";
import type { Range } from "./state";
import { inWords } from "./words";

export interface Log {
    time_ns: number;
    goroutine: number;
    category: string;
    message: string;
}

export interface Task {
    id: number;
    name: string;
    parent: number | null;
    /* 0: not in the trace. */
    start_ns: number;
    end_ns: number;
    complete: boolean;
    region_count: number;
    goroutines: number[];
    children: number[];
    logs: Log[];
}

export interface Region {
    goroutine: number;
    task: number;
    name: string;
    /* Among those of its name, by start; 0: it began before the trace, or is inherited. */
    number: number;
    start_ns: number;
    end_ns: number;
    total_ns: number;
    exec_ns: number;
    sched_wait_ns: number;
    syscall_ns: number;
    syscall_block_ns: number;
    block_ns: Record<string, number>;
    /* Only if the kinds of waits are recorded. */
    waits?: Wait[];
}

export interface Wait {
    reason: string;
    wait_kind?: string;
    ns: number;
}

/* Longest first. */
export function waitsIn(of: Region): Wait[] {
    const reasons = () => Object.entries(of.block_ns).map(([reason, ns]) => ({ reason, ns }));
    return (of.waits ?? reasons()).filter(({ ns }) => ns > 0).sort((a, b) => b.ns - a.ns);
}

/* The origin and end of the trace's times. */
export interface Origin {
    origin_ns: number;
    /* The end of the trace, since the first event. */
    end: number;
}

export interface Answers extends Origin {
    tasks: Task[];
    regions: Region[];
}

/* Start and end are in ns since the first event. */
export interface Member extends Range {
    /* Its critical path, in the form of `why` (state.ts). */
    why: string;
    /* "task 7", "region parse#3" */
    title: string;
    name: string;
    /* Both ends are in the trace. */
    complete: boolean;
    task?: Task;
    region?: Region;
}

export interface Group {
    key: string;
    title: string;
    count: number;
    /* From, to, count: how long they took. */
    buckets: readonly (readonly [number, number, number])[];
    /* The median of the complete ones; for an even number, the faster of the middle two. */
    median?: Member;
    longest: number;
    /* Slowest first; if very many, only some of them. */
    members: Member[];
}

export const lengthOf = (of: Range) => of.to - of.from;

/* Where something began and ended that may have begun before the trace or not ended in it. */
export function rangeOf(of: { start_ns: number; end_ns: number }, answers: Origin): Range {
    const { origin_ns, end } = answers;
    const from = of.start_ns > 0 ? Math.max(0, of.start_ns - origin_ns) : 0;
    return { from, to: Math.max(from, of.end_ns > 0 ? of.end_ns - origin_ns : end) };
}

/* Whether it is a whole goroutine, which was created in a region and so belongs to its task. */
export function isInherited({ name, number, start_ns }: Region): boolean {
    return name === "" && number === 0 && start_ns > 0;
}

export function memberOfRegion(region: Region, answers: Origin): Member {
    const { name, number, goroutine } = region;
    const inherits = isInherited(region);
    return {
        ...rangeOf(region, answers),
        why: inherits ? `goroutine=${goroutine}` : `region=${name}#${number}`,
        title: inherits
            ? inWords(`{task} ${goroutine}, created in a region`)
            : `region ${name || NO_NAME}#${number}`,
        name,
        complete: region.start_ns > 0 && region.end_ns > 0,
        region,
    };
}

export function memberOfTask(task: Task, answers: Origin): Member {
    return {
        ...rangeOf(task, answers),
        why: `task=${task.id}`,
        title: `task ${task.id}`,
        name: task.name,
        complete: task.complete,
        task,
    };
}

/* "task 7 request", or "task 7" without a name; "region parse#3" */
export function fullTitle(of: Member): string {
    return of.task && of.name ? `${of.title} ${of.name}` : of.title;
}

/* "task request", or "task" for those without a name; "region parse", "region (unknown)" */
export function groupTitle(of: "task" | "region", name: string): string {
    if (of === "region") return `region ${name || NO_NAME}`;
    return name ? `${of} ${name}` : of;
}

export function slowestFirst(members: Member[]): Member[] {
    return members.sort((a, b) => lengthOf(b) - lengthOf(a));
}

function groupOf(key: string, members: Member[]): Group {
    slowestFirst(members);
    const complete = members.filter((member) => member.complete);
    const lengths = members.map(lengthOf);
    return {
        key,
        title: key,
        count: members.length,
        buckets: lengths.map((ns) => [ns, ns + 1, 1] as const),
        median: complete[Math.floor(complete.length / 2)],
        longest: lengths[0],
        members,
    };
}

function byName(of: "task" | "region", members: Member[]): Group[] {
    const names = new Map<string, Member[]>();
    for (const member of members) {
        const others = names.get(member.name);
        if (others) others.push(member);
        else names.set(member.name, [member]);
    }
    const total = (group: Group) => group.members.reduce((ns, one) => ns + lengthOf(one), 0);
    const groups = [...names].map(([name, its]) => groupOf(groupTitle(of, name), its));
    return groups.sort((a, b) => total(b) - total(a));
}

/* By name, tasks before regions; groups with the most total time first, and regions without a name
 * last. */
export function groupsOf(answers: Answers): Group[] {
    const regions = byName(
        "region",
        answers.regions.map((region) => memberOfRegion(region, answers)),
    );
    const isNamed = (group: Group) => group.members[0].name !== "";
    return [
        ...byName(
            "task",
            answers.tasks.map((task) => memberOfTask(task, answers)),
        ),
        ...regions.filter(isNamed),
        ...regions.filter((group) => !isNamed(group)),
    ];
}

/* The regions that belong to a member: those of its task, or those of the goroutine during its region. */
export function regionsOf(of: Member, answers: Answers): Region[] {
    if (of.task) return answers.regions.filter(({ task }) => task === of.task?.id);
    return answers.regions.filter((region) => {
        const { from, to } = rangeOf(region, answers);
        return region.goroutine === of.region?.goroutine && from >= of.from && to <= of.to;
    });
}

/* How deeply each region is nested in others of its goroutine; `regions` may be in any order. */
export function depthsOf(regions: Region[], answers: Answers): Map<Region, number> {
    const depths = new Map<Region, number>();
    const open: Range[] = [];
    const ranges = regions.map((region) => ({ region, ...rangeOf(region, answers) }));
    ranges.sort((a, b) => a.from - b.from || b.to - a.to);
    for (const { region, ...its } of ranges) {
        while (open.length > 0 && open[open.length - 1].to <= its.from) open.pop();
        depths.set(region, open.length);
        open.push(its);
    }
    return depths;
}
