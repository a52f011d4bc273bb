/*
 * Tasks and regions as members of groups of one name, which stand for the requests of a program: the answers of `trail
 * tasks --json` and `trail regions --json`, slowest first.
 */
import type { Range } from "./state";

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
    start_ns: number;
    end_ns: number;
    total_ns: number;
    exec_ns: number;
    sched_wait_ns: number;
    syscall_ns: number;
    syscall_block_ns: number;
    block_ns: Record<string, number>;
    /* Only where the kinds of waits are recorded. */
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

export interface Answers {
    origin_ns: number;
    tasks: Task[];
    regions: Region[];
    /* The end of the trace, since the first event. */
    end: number;
}

/* Begin and end are in ns since the first event. */
export interface Member extends Range {
    /* What its critical path is of, as `why` (state.ts) has it. */
    why: string;
    /* "task 7", "region parse#3" */
    title: string;
    name: string;
    /* Both of its ends are in the trace. */
    complete: boolean;
    task?: Task;
    region?: Region;
}

export interface Group {
    key: string;
    title: string;
    /* Slowest first. */
    members: Member[];
}

export const lengthOf = (of: Range) => of.to - of.from;

/* Where something began and ended that may have begun before the trace, or not ended in it. */
export function rangeOf(of: { start_ns: number; end_ns: number }, answers: Answers): Range {
    const { origin_ns, end } = answers;
    const from = of.start_ns > 0 ? Math.max(0, of.start_ns - origin_ns) : 0;
    return { from, to: Math.max(from, of.end_ns > 0 ? of.end_ns - origin_ns : end) };
}

/*
 * Regions are numbered by name, in the order of the answer. Those without a name are goroutines that were created in a
 * task: they are part of that, and no members of their own.
 */
function regionMembers(answers: Answers): Member[] {
    const seen = new Map<string, number>();
    const named = answers.regions.filter(({ name }) => name !== "");
    return named.map((region) => {
        const number = (seen.get(region.name) ?? 0) + 1;
        seen.set(region.name, number);
        return {
            ...rangeOf(region, answers),
            why: `region=${region.name}#${number}`,
            title: `region ${region.name}#${number}`,
            name: region.name,
            complete: region.start_ns > 0 && region.end_ns > 0,
            region,
        };
    });
}

function taskMembers(answers: Answers): Member[] {
    return answers.tasks.map((task) => ({
        ...rangeOf(task, answers),
        why: `task=${task.id}`,
        title: `task ${task.id}`,
        name: task.name,
        complete: task.complete,
        task,
    }));
}

/* By name, tasks before regions; the groups that took most time in all first. */
export function groupsOf(answers: Answers): Group[] {
    const byName = (of: string, members: Member[]) => {
        const groups = new Map<string, Group>();
        for (const member of members) {
            const key = `${of} ${member.name}`;
            const group = groups.get(key) ?? { key, title: key, members: [] };
            group.members.push(member);
            groups.set(key, group);
        }
        const total = (group: Group) => group.members.reduce((ns, one) => ns + lengthOf(one), 0);
        for (const group of groups.values())
            group.members.sort((a, b) => lengthOf(b) - lengthOf(a));
        return [...groups.values()].sort((a, b) => total(b) - total(a));
    };
    return [...byName("task", taskMembers(answers)), ...byName("region", regionMembers(answers))];
}

/* The one in the middle of those that are complete; of an even number, the faster of the two. */
export function medianOf(group: Group): Member | undefined {
    const complete = group.members.filter((member) => member.complete);
    return complete[Math.floor(complete.length / 2)];
}

/* The regions that belong to a member: those of its task, or those of the goroutine during its region. */
export function regionsOf(of: Member, answers: Answers): Region[] {
    if (of.task) return answers.regions.filter(({ task }) => task === of.task?.id);
    return answers.regions.filter((region) => {
        const { from, to } = rangeOf(region, answers);
        return region.goroutine === of.region?.goroutine && from >= of.from && to <= of.to;
    });
}

/* How deep each region is in others of its goroutine; `regions` may be in any order. */
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
