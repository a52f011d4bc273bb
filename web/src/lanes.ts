/*
 * The rows of the timeline: lanes, filtered, sorted and grouped. While a trace is being read, new
 * lanes are added at the end of the order of appearance. With very many lanes this takes a while,
 * so it is done in slices, and the old rows remain until the new ones are ready.
 */
import { batch, computed, effect, signal } from "@preact/signals";
import { api, type Kind } from "./api";
import { type Arrangement, arrange, type Grouping, type Order, type Wanted } from "./arrange";
import { measure } from "./colors";
import { numberedWithin, ownNumber, shortName } from "./format";
import { isFramed } from "./framed";
import { LaneReader, type LaneTable, noLanes } from "./lane_table";
import { type LaneRow, Layout, type Looks, type Row } from "./layout";
import { moving } from "./moving";
import { isRuntime } from "./runtime";
import { inSlices, keepAt, settled } from "./slices";
import {
    filter,
    folded,
    type Group,
    group,
    hasLeads,
    kind,
    leads,
    MOST_IN_AREA,
    pinned,
    type Range,
    type Sort,
    say,
    scroll,
    selected,
    showsIdle,
    showsRuntime,
    size,
    sort,
    sortReason,
    status,
    unfolded,
    view,
} from "./state";
import type { WaitTable } from "./wait_table";
import { waits, waitTitle } from "./waits";
import { term } from "./words";

export const LANE_HEIGHT = measure("lane-height");
/* Height of a row below an unfolded lane: one for each depth of its regions and stacks. */
export const DEPTH_HEIGHT = 13;
export const DEPTHS = 10;

export const lanes = signal<LaneTable>(noLanes);
export const allLanes = signal(0);

/* "G", "thread " */
function letterOf(of: Kind): string {
    return term(of === "goroutine" ? "task_id" : of === "proc" ? "slot_short" : "machine_short");
}

export function laneTitle(of: Kind, lane: { id: number; name?: string }): string {
    const number = `${letterOf(of)}${ownNumber(lane.id, lane.name)}`;
    return lane.name ? `${number} ${shortName(lane.name)}` : number;
}

/*
 * The title for this width: if it does not fit, a word before the number is left out, and the name
 * is shortened with "…" in the middle if necessary.
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
    const letter = letterOf(of);
    const number = `${letter.length > 1 ? "" : letter}${ownNumber(lane.id, lane.name)}`;
    return numberedWithin(number, name, width, widthOf);
}

/* The lane with that number; of several, the one that exists at that time, or else the first. */
export function laneOf(id: number, at?: number): number | null {
    const all = lanes.value.withId(id);
    const found = at === undefined ? all[0] : all.find((of) => of.begin <= at && at <= of.end);
    return (found ?? all[0])?.lane ?? null;
}

/* The names of several lanes. */
export const sharedNames = computed<ReadonlySet<string>>(() => {
    const { names, columns, count: many } = lanes.value;
    const seen = new Uint8Array(names.length);
    for (let lane = 0; lane < many; lane++) {
        const name = columns.name[lane];
        if (seen[name] < 2) seen[name]++;
    }
    return new Set(names.filter((_, i) => seen[i] > 1));
});

/* MARK: Loading */

/* The server answers in pages. The first ones are shown before the others arrive. */
async function load(of: Kind): Promise<void> {
    const reader = new LaneReader();
    for (let isLast = false; !isLast; ) {
        const answer = await api.lanes(of, reader.count);
        if (kind.peek() !== of) return;
        reader.add(answer);
        isLast = reader.count === reader.all || answer.rows.length === 0;
        if (!isLast && lanes.peek().count > 0) continue;
        const table = await inSlices(reader.table());
        if (kind.peek() !== of) return;
        batch(() => {
            lanes.value = table;
            if (isLast) allLanes.value = reader.all;
        });
    }
}

/* How many lanes the server has. */
const count = computed(() => {
    const { goroutines = 0, procs = 0, threads = 0 } = status.value ?? {};
    return { goroutine: goroutines, proc: procs, thread: threads }[kind.value];
});

/* Identifies the state that the list of lanes depends on; empty: nothing has been read yet. */
const wanted = computed(() => {
    const now = status.value;
    return now?.version ? `${kind.value} ${count.value} ${now.done}` : "";
});

/* Resolves when the lanes that the server has now are loaded, or different ones are wanted. */
export function lanesLoaded(): Promise<void> {
    const of = kind.peek();
    const goal = count.peek();
    return new Promise((resolve) => {
        const stop = effect(() => {
            if (lanes.value.count < goal && kind.value === of) return;
            queueMicrotask(() => {
                stop();
                resolve();
            });
        });
    });
}

/* Waits for a time, or until the trace has been read. */
async function rest(ms: number): Promise<void> {
    const end = performance.now() + ms;
    while (performance.now() < end && !status.peek()?.done)
        await new Promise((resolve) => setTimeout(resolve, 100));
}

/* How long the server then has for reading the trace, as a multiple of the time it took to get the
 * lanes. */
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
                /* The old lanes remain; the next change of the status requests again. */
            });
            await rest(RESTS * (performance.now() - began));
        }
        busy = false;
    };
    let shown = kind.peek();
    effect(() => {
        if (shown !== kind.value) lanes.value = noLanes;
        shown = kind.value;
        if (wanted.value && !busy) void next();
    });
}

/* MARK: Tasks */

/* By goroutine: the first task that it took part in. */
const taskOf = signal<ReadonlyMap<number, string>>(new Map());

/* Number, type and goroutines of each, ordered by number. */
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

function waitOrder({ columns }: LaneTable, of: WaitTable): Order {
    const reason = sortReason.value;
    if (reason === null || kind.value !== "goroutine")
        return { key: (lane) => -columns.waiting[lane] };
    const number = of.names.indexOf(reason);
    return { key: (lane) => -of.time(lane, number) };
}

const orders: Record<Sort, (of: LaneTable) => Order | null> = {
    appearance: () => null,
    id: ({ columns: { id } }) => ({ key: (lane) => id[lane] }),
    name: ({ columns: { name }, names }) => ({ key: (lane) => name[lane], texts: names }),
    begin: ({ columns: { begin } }) => ({ key: (lane) => begin[lane] }),
    "first-wait": ({ columns: { first_wait } }) => ({
        key: (lane) => (first_wait[lane] < 0 ? Number.POSITIVE_INFINITY : first_wait[lane]),
    }),
    total: ({ columns: { begin, end } }) => ({ key: (lane) => begin[lane] - end[lane] }),
    runnable: ({ columns: { runnable } }) => ({ key: (lane) => -runnable[lane] }),
    running: ({ columns: { running } }) => ({ key: (lane) => -running[lane] }),
    waiting: (of) => waitOrder(of, waits.value),
    mostly: () => (kind.value === "goroutine" ? waits.value.mostlyOrder(waitTitle) : null),
    syscall: ({ columns: { syscall, blocked } }) => ({
        key: (lane) => -syscall[lane] - blocked[lane],
    }),
};

const groupings: Record<Group, (of: LaneTable) => Grouping | null> = {
    none: () => null,
    name: ({ columns, names }) => ({
        key: (lane) => columns.name[lane],
        text: (name) => names[Number(name)],
        hidesSingle: true,
    }),
    creator: (of) => ({
        key: (lane) => of.columns.parent[lane],
        text: (number) => {
            const parent = of.get(Number(number));
            return parent
                ? `created by ${laneTitle("goroutine", parent)}`
                : "creator not in the trace";
        },
        hidesSingle: false,
    }),
    task: ({ columns }) => {
        const tasks = taskOf.value;
        const key = (lane: number) => tasks.get(columns.id[lane]) ?? "no task";
        return { key, text: String, hidesSingle: false };
    },
};

function grouping(): Grouping | null {
    return kind.value === "goroutine" ? groupings[group.value](lanes.value) : null;
}

/* MARK: Lanes left out */

/* The window that decides which lanes are shown: changes when the window rests. */
const rested = computed<Range>(
    (): Range => (moving.value ? (restedBefore ?? view.peek()) : view.value),
);
let restedBefore: Range | null = null;
effect(() => {
    restedBefore = rested.value;
});

/* How many lanes of goroutines are hidden. */
export const hiddenLanes = signal({ idle: 0, runtime: 0 });

/* Which lanes are hidden, unless they are selected or used; undefined: none. */
function leftOut(): Wanted["isLeftOut"] {
    const { columns, names } = lanes.value;
    if (kind.value !== "goroutine") return undefined;
    const { from, to } = rested.value;
    const foldsIdle = !showsIdle.value && !filter.value;
    const foldsRuntime = !showsRuntime.value && !filter.value;
    const chosen = selected.value?.kind === "goroutine" ? selected.value.lane : -1;
    const ofRuntime = names.map(isRuntime);
    const hidden = { idle: 0, runtime: 0 };
    /* In one state all along, and never seen to run: not even its start function is known. */
    const isUnseen = (lane: number) => columns.spans[lane] <= 1 && !names[columns.name[lane]];
    /* Of two traces, whatever the window, so that lanes stay beside each other. */
    const isElsewhere = (lane: number) =>
        !isFramed && (columns.begin[lane] > to || columns.end[lane] < from);
    return {
        test: (lane) => {
            if (lane === chosen) return false;
            if (foldsRuntime && ofRuntime[columns.name[lane]]) hidden.runtime++;
            else if (foldsIdle && (isElsewhere(lane) || isUnseen(lane))) hidden.idle++;
            else return false;
            return true;
        },
        done: () => {
            hiddenLanes.value = hidden;
        },
    };
}

/* MARK: Rows */

const arrangement = signal<Arrangement>({
    table: noLanes,
    order: new Uint32Array(0),
    pins: 0,
    groups: null,
});
const noFolds: Looks = {
    laneHeight: LANE_HEIGHT,
    openHeight: DEPTHS * DEPTH_HEIGHT,
    folded: new Set(),
    unfolded: new Set(),
};
export const layout = signal(new Layout(arrangement.peek(), noFolds));

/* A small number of Ps or threads share the available height. */
const laneHeight = computed<number>(() => {
    const count = arrangement.value.order.length;
    if (kind.value === "goroutine" || count === 0) return LANE_HEIGHT;
    return Math.max(LANE_HEIGHT, Math.min(Math.floor((0.9 * size.value.height) / count), 56));
});

/* Height of the part of a row that shows the states; regions are below it. */
export function stateHeight(row: LaneRow): number {
    return (row.open ? LANE_HEIGHT : row.height) - 9;
}

/* Keeps the rows up to date. */
export function keepRows(): void {
    keepAt(arrangement, () =>
        arrange({
            table: lanes.value,
            isLeftOut: leftOut(),
            filter: filter.value,
            pins: [...pinned.value, ...(hasLeads() ? leads.value : [])],
            order: orders[sort.value](lanes.value),
            grouping: grouping(),
        }),
    );
    keepAt(layout, () => {
        const looks = { ...noFolds, laneHeight: laneHeight.value, folded: folded.value };
        if (kind.value === "goroutine") looks.unfolded = unfolded.value;
        return new Layout(arrangement.value, looks).fill();
    });
    /* If there are fewer rows than before, the last ones stay in view. While lanes are being
     * loaded, more may come. */
    effect(() => {
        const { of } = layout.value;
        const isWhole = of.table === lanes.value && lanes.value.count >= Math.max(1, count.value);
        if (isWhole && status.value?.done && size.value.height > 0) scrollTo(scroll.peek());
    });
}

/* The lanes of rows, including all members of a folded group: how many, and as many of the first as
 * an area may have. */
export function lanesOfRows(rows: Row[]): { count: number; lanes: number[] } {
    const found = { count: 0, lanes: [] as number[] };
    for (const row of rows) {
        const own = row.type === "lane" ? [row.lane.lane] : row.folded ? row.lanes : [];
        found.count += own.length;
        found.lanes.push(...own.slice(0, MOST_IN_AREA - found.lanes.length));
    }
    return found;
}

export function scrollTo(top: number): void {
    const last = layout.peek().height - size.peek().height + 20;
    scroll.value = Math.max(0, Math.round(Math.min(top, last)));
}

export function hasGroups(): boolean {
    return layout.peek().groupNames().length > 0;
}

export function foldAll(): void {
    folded.value = new Set(layout.peek().groupNames());
    scrollTo(0);
}

export function unfoldAll(): void {
    folded.value = new Set();
}

/* Removes the filter and the fold that hide a lane. */
function unhide(lane: number): void {
    const by = grouping();
    const own = by?.text(by.key(lane));
    batch(() => {
        filter.value = "";
        showsIdle.value = true;
        if (isRuntime(lanes.peek().get(lane)?.name ?? "")) showsRuntime.value = true;
        folded.value = new Set([...folded.peek()].filter((name) => name !== own));
    });
}

/* Scrolls the lane into view, and unfolds its group. */
export async function reveal(lane: number): Promise<void> {
    await settled();
    if (!layout.peek().ofLane(lane) && lanes.peek().get(lane)) {
        unhide(lane);
        await settled();
    }
    const row = layout.peek().ofLane(lane);
    if (!row) return;
    const { height } = size.peek();
    const top = scroll.peek();
    if (row.top >= top && row.top + row.height <= top + height - 4) return;
    const middle = row.top - height / 2 + LANE_HEIGHT;
    /* The first row is not cut. */
    scrollTo(layout.peek().between(middle, middle + 1)[0]?.top ?? middle);
}
