/*
 * The rows of the timeline: lanes, filtered, sorted and grouped. While a trace is being read, new lanes are added at
 * the end of the order of appearance.
 */
import { computed, effect, signal } from "@preact/signals";
import { api, type Kind } from "./api";
import { shortName } from "./format";
import {
    filter,
    folded,
    group,
    kind,
    pinned,
    type Sort,
    say,
    scroll,
    size,
    sort,
    sortReason,
    status,
    unfolded,
} from "./state";
import { waitsOf } from "./waits";
import { term } from "./words";

export interface Lane {
    lane: number;
    id: number;
    name: string;
    begin: number;
    end: number;
    open: boolean;
    spans: number;
    /* Time in ns by state; [0] is unused. */
    ns: number[];
    parent: number;
    /* Infinity: it never waits. */
    firstWait: number;
}

export type Row =
    | { type: "group"; name: string; members: Lane[]; folded: boolean; top: number; height: number }
    | { type: "lane"; lane: Lane; pinned: boolean; open: boolean; top: number; height: number };

export const LANE_HEIGHT = 22;
const GROUP_HEIGHT = 24;
/* Height of a row below an unfolded lane: one for each depth of its regions and stacks. */
export const DEPTH_HEIGHT = 13;
export const DEPTHS = 10;

/* Indexed by lane number: the server lists them in that order, from 0. */
export const lanes = signal<Lane[]>([]);
export const allLanes = signal(0);

export function laneTitle(of: Kind, lane: { id: number; name?: string }): string {
    const letter = term(
        of === "goroutine" ? "task_id" : of === "proc" ? "slot_short" : "machine_short",
    );
    return `${letter}${lane.id}${lane.name ? ` ${shortName(lane.name)}` : ""}`;
}

/*
 * The title where there is only this width: if it does not fit, the name comes first, with "…" in its middle as far as that
 * is needed, and then the mere number.
 */
export function titleWithin(
    of: Kind,
    lane: { id: number; name?: string },
    width: number,
    widthOf: (text: string) => number,
): string {
    const whole = laneTitle(of, lane);
    const name = shortName(lane.name ?? "");
    if (!name || widthOf(whole) <= width) return whole;
    const shortened = (kept: number) => {
        const head = name.slice(0, Math.ceil(kept / 2));
        const tail = name.slice(name.length - Math.floor(kept / 2));
        return `${kept < name.length ? `${head}…${tail}` : name} ${lane.id}`;
    };
    let kept = name.length;
    while (kept > 8 && widthOf(shortened(kept)) > width) kept--;
    return shortened(kept);
}

const byId = computed<ReadonlyMap<number, Lane[]>>(() => {
    const found = new Map<number, Lane[]>();
    for (const lane of lanes.value) {
        const others = found.get(lane.id);
        if (others) others.push(lane);
        else found.set(lane.id, [lane]);
    }
    return found;
});

/* The lane with that number, of several the one that exists at that time, or else the first. */
export function laneOf(id: number, at?: number): number | null {
    const all = byId.value.get(id) ?? [];
    const found = at === undefined ? all[0] : all.find((of) => of.begin <= at && at <= of.end);
    return (found ?? all[0])?.lane ?? null;
}

/* MARK: Loading */

function toLane(row: number[], names: string[]): Lane {
    return {
        lane: row[0],
        id: row[1],
        name: names[row[2]] ?? "",
        begin: row[3],
        end: row[4],
        open: Boolean(row[5]),
        spans: row[6],
        ns: [0, row[7], row[8], row[9], row[10], row[11]],
        parent: row[12] ?? -1,
        firstWait: row[13] >= 0 ? row[13] : Number.POSITIVE_INFINITY,
    };
}

/* The server answers in pages. The lanes change once, with the last page, because each change sorts all of them. */
async function load(of: Kind): Promise<void> {
    const found: Lane[] = [];
    let all = 1;
    while (found.length < all) {
        const answer = await api.lanes(of, found.length);
        if (kind.peek() !== of) return;
        all = answer.all;
        for (const row of answer.rows) found.push(toLane(row, answer.names));
        if (lanes.peek().length === 0 && found.length < all) lanes.value = [...found];
        if (answer.rows.length === 0) break;
    }
    allLanes.value = all;
    lanes.value = found;
}

/* Identifies the state that the list of lanes depends on; empty: nothing has been read yet. */
const wanted = computed(() => {
    const now = status.value;
    if (!now?.version) return "";
    const count = { goroutine: now.goroutines, proc: now.procs, thread: now.threads }[kind.value];
    return `${kind.value} ${count} ${now.done}`;
});

/* Waits for a time, or until the trace has been read. */
async function rest(ms: number): Promise<void> {
    const end = performance.now() + ms;
    while (performance.now() < end && !status.peek()?.done)
        await new Promise((resolve) => setTimeout(resolve, 100));
}

/* How many times as long as it took to get the lanes the server then has for reading the trace. */
const RESTS = 5;

/* Requests the lanes again when there are more, or when their figures are final; one request at a time. */
export function keepLanes(): void {
    let loaded = "";
    let busy = false;
    const next = async (): Promise<void> => {
        busy = true;
        while (wanted.peek() !== loaded) {
            loaded = wanted.peek();
            const began = performance.now();
            await load(kind.peek()).catch(() => {
                /* The old lanes stay; the next change of the status requests again. */
            });
            await rest(RESTS * (performance.now() - began));
        }
        busy = false;
    };
    let shown = kind.peek();
    effect(() => {
        if (shown !== kind.value) lanes.value = [];
        shown = kind.value;
        if (wanted.value && !busy) void next();
    });
}

/* MARK: Tasks */

/* By goroutine: the first task that it took part in. */
const taskOf = signal<ReadonlyMap<number, string>>(new Map());

/* Number, type and goroutines of each, in the order of their numbers. */
interface Tasks {
    tasks: [number, string, ...number[]][];
}

/* Requests the tasks when lanes are first grouped by task. */
export function keepTasks(): void {
    let asked = false;
    effect(() => {
        if (asked || group.value !== "task" || !status.value?.done || !status.value.can_run) return;
        asked = true;
        api.run<Tasks>("tasks", { brief: 1 })
            .then(({ tasks }) => {
                const found = new Map<number, string>();
                for (const [number, name, ...goroutines] of tasks)
                    for (const id of goroutines)
                        if (!found.has(id)) found.set(id, `task ${number} ${name}`);
                taskOf.value = found;
            })
            .catch((error: Error) => {
                asked = false;
                say(`The lanes cannot be grouped by task: ${error.message}.`);
            });
    });
}

/* MARK: Order */

function waited(lane: Lane): number {
    const reason = sortReason.value;
    return reason === null || kind.value !== "goroutine"
        ? lane.ns[3]
        : (waitsOf(lane)?.waits[reason] ?? 0);
}

/* Sorts after all names: for lanes that never wait. */
const NEVER = "\uffff";

/* What lanes are sorted by, ascending; equals by appearance. */
const orders: Record<Sort, (lane: Lane) => number | string> = {
    appearance: (lane) => lane.lane,
    id: (lane) => lane.id,
    name: (lane) => lane.name,
    begin: (lane) => lane.begin,
    "first-wait": (lane) => lane.firstWait,
    total: (lane) => lane.begin - lane.end,
    runnable: (lane) => -lane.ns[1],
    running: (lane) => -lane.ns[2],
    waiting: (lane) => -waited(lane),
    mostly: (lane) => waitsOf(lane)?.mostly || NEVER,
    syscall: (lane) => -lane.ns[4] - lane.ns[5],
};

/* Numbers for texts, in the order of the texts. There are far fewer different ones than lanes. */
function ranks(texts: string[]): number[] {
    const sorted = [...new Set(texts)].sort((a, b) => a.localeCompare(b));
    const rank = new Map(sorted.map((text, i) => [text, i]));
    return texts.map((text) => rank.get(text) as number);
}

/* Each key is computed once, and numbers are compared: a million lanes take a third of a second. */
function inOrder(of: Lane[], by: Sort): Lane[] {
    const values = of.map(orders[by]);
    const numbers = typeof values[0] === "string" ? ranks(values as string[]) : values;
    const keys = Float64Array.from(numbers as number[]);
    const places = new Uint32Array(of.length).map((_, i) => i);
    places.sort((a, b) => keys[a] - keys[b] || a - b);
    return Array.from(places, (i) => of[i]);
}

/* Whether the lane's name or id contains all words, and none of those given as "-word". */
export function matches(lane: Lane, words: string[]): boolean {
    if (words.length === 0) return true;
    const text = `${lane.name} ${lane.id}`.toLowerCase();
    return words.every((word) =>
        word.startsWith("-") && word.length > 1
            ? !text.includes(word.slice(1))
            : text.includes(word),
    );
}

function inGroups(sorted: Lane[], nameOf: (lane: Lane) => string): Map<string, Lane[]> {
    const groups = new Map<string, Lane[]>();
    for (const lane of sorted) {
        const name = nameOf(lane);
        const members = groups.get(name);
        if (members) members.push(lane);
        else groups.set(name, [lane]);
    }
    return groups;
}

function creatorName(lane: Lane): string {
    const parent = lanes.value[lane.parent];
    return parent ? `created by ${laneTitle("goroutine", parent)}` : "creator not in the trace";
}

const groupNames: Record<string, (lane: Lane) => string> = {
    name: (lane) => lane.name,
    creator: creatorName,
    task: (lane) => taskOf.value.get(lane.id) ?? "no task",
};

/* MARK: Rows */

export interface Layout {
    rows: Row[];
    height: number;
    /* The row of each visible lane. */
    byLane: Map<number, Row & { type: "lane" }>;
}

class LayoutMaker {
    readonly rows: Row[] = [];
    readonly byLane = new Map<number, Row & { type: "lane" }>();
    private top = 0;

    constructor(private readonly laneHeight: number) {}

    addGroup(name: string, members: Lane[], isFolded: boolean): void {
        const row = { name, members, folded: isFolded, top: this.top, height: GROUP_HEIGHT };
        this.rows.push({ type: "group", ...row });
        this.top += GROUP_HEIGHT;
    }

    addLane(lane: Lane, isPinned: boolean): void {
        const open = kind.value === "goroutine" && unfolded.value.has(lane.lane);
        const height = this.laneHeight + (open ? DEPTHS * DEPTH_HEIGHT : 0);
        const row = { type: "lane" as const, lane, pinned: isPinned, open, top: this.top, height };
        this.rows.push(row);
        if (!this.byLane.has(lane.lane)) this.byLane.set(lane.lane, row);
        this.top += height;
    }

    finish(): Layout {
        return { rows: this.rows, height: this.top, byLane: this.byLane };
    }
}

/* A small number of Ps or threads share the available height. */
function laneHeight(count: number): number {
    if (kind.value === "goroutine" || count === 0) return LANE_HEIGHT;
    return Math.max(LANE_HEIGHT, Math.min(Math.floor((0.9 * size.value.height) / count), 56));
}

/* Height of the part of a row that shows the states; regions are below it. */
export function stateHeight(row: Row & { type: "lane" }): number {
    return (row.open ? LANE_HEIGHT : row.height) - 9;
}

export const layout = computed<Layout>(() => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const pins = new Set(pinned.value);
    const shown = lanes.value.filter((lane) => pins.has(lane.lane) || matches(lane, words));
    const sorted = sort.value === "appearance" ? shown : inOrder(shown, sort.value);
    const maker = new LayoutMaker(laneHeight(sorted.length));
    for (const number of pinned.value) {
        const lane = lanes.value[number];
        if (lane) maker.addLane(lane, true);
    }
    const rest = pins.size > 0 ? sorted.filter((lane) => !pins.has(lane.lane)) : sorted;
    if (kind.value !== "goroutine" || group.value === "none") {
        for (const lane of rest) maker.addLane(lane, false);
        return maker.finish();
    }
    for (const [name, members] of inGroups(rest, groupNames[group.value])) {
        if (members.length === 1 && group.value === "name") {
            maker.addLane(members[0], false);
            continue;
        }
        const isFolded = folded.value.has(name);
        maker.addGroup(name, members, isFolded);
        for (const lane of isFolded ? [] : members) maker.addLane(lane, false);
    }
    return maker.finish();
});

/* The rows in a vertical section of the list. */
export function rowsBetween(of: Layout, top: number, bottom: number): Row[] {
    let low = 0;
    let high = of.rows.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (of.rows[middle].top + of.rows[middle].height <= top) low = middle + 1;
        else high = middle;
    }
    let last = low;
    while (last < of.rows.length && of.rows[last].top < bottom) last++;
    return of.rows.slice(low, last);
}

/* The lanes of rows: of a folded group, all of its members. */
export function lanesOfRows(rows: Row[]): number[] {
    const found = rows.flatMap((row) => {
        if (row.type === "lane") return [row.lane.lane];
        return row.folded ? row.members.map((member) => member.lane) : [];
    });
    return [...new Set(found)];
}

export function scrollTo(top: number): void {
    scroll.value = Math.max(0, Math.min(top, layout.peek().height - size.peek().height + 20));
}

/* Scrolls the lane into view, and unfolds its group. */
export function reveal(lane: number): void {
    let row = layout.peek().byLane.get(lane);
    if (!row) {
        const found = lanes.peek()[lane];
        if (!found) return;
        filter.value = "";
        const own = groupNames[group.peek()]?.(found);
        folded.value = new Set([...folded.peek()].filter((name) => name !== own));
        row = layout.value.byLane.get(lane);
    }
    if (!row) return;
    const { height } = size.peek();
    const top = scroll.peek();
    if (row.top < top || row.top + row.height > top + height - 4)
        scrollTo(row.top - height / 2 + LANE_HEIGHT);
}
