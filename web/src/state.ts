/*
 * The state of the page, as signals. The URL's fragment contains everything needed to show the same
 * view elsewhere.
 */
import { batch, computed, signal } from "@preact/signals";
import {
    type Kind,
    type MarkFacts,
    type MarkKind,
    RUNNABLE,
    RUNNING,
    type Span,
    type Status,
    WAITING,
} from "./api";

export interface Range {
    from: number;
    to: number;
}

/* A selected range, over all lanes or some lanes of a kind. */
export interface Area extends Range {
    of?: { kind: Kind; lanes: readonly number[] };
}

/* The most lanes in an area: their numbers are sent with each request. */
export const MOST_IN_AREA = 1000;

/* A span; without `span`, a whole lane. */
export interface Place {
    kind: Kind;
    lane: number;
    span?: number;
}

/* The sort orders of lanes and their labels; "mostly" is the reason with the most waiting time. */
export const sorts = [
    ["appearance", "appearance"],
    ["id", "number"],
    ["name", "name"],
    ["begin", "begin"],
    ["first-wait", "first wait"],
    ["total", "total time"],
    ["running", "time running"],
    ["runnable", "time ready"],
    ["waiting", "time waiting"],
    ["mostly", "what it mostly waited for"],
    ["syscall", "time in system calls"],
] as const;
export type Sort = (typeof sorts)[number][0];
export type Group = "none" | "name" | "creator" | "task";
/* The panels in their groups, in the order of their tabs: name, title, and label in the palette ("": not in it). */
export const panels = [
    ["span", "Span", "", "Selection"],
    ["range", "Range", "", "Selection"],
    ["summary", "Summary", "summary", "Findings"],
    ["locks", "Locks", "locks", "Waiting"],
    ["latency", "Latency", "latency", "Waiting"],
    ["requests", "Tasks and regions", "tasks and regions", "Requests"],
    ["path", "Critical path", "critical path", "Requests"],
    ["functions", "Functions", "functions", "CPU"],
    ["flame", "Stacks", "stacks", "CPU"],
    ["heat", "{Slot} heat map", "heat map of {slots}", "CPU"],
    ["mmu", "MMU", "mmu", "CPU"],
    ["gc", "GC", "garbage collections", "CPU"],
    ["threads", "Threads, {slots}", "threads and {slots}", "CPU"],
    ["goroutines", "{Tasks}", "{tasks}", "Data"],
    ["sql", "SQL", "sql", "Data"],
    ["notes", "Notes", "notes", "Data"],
] as const;
export type Tab = (typeof panels)[number][0];
export type PanelGroup = (typeof panels)[number][3];

export const status = signal<Status | null>(null);
/* The error if the server does not answer; otherwise empty. */
export const offline = signal("");

export const kind = signal<Kind>("goroutine");
export const view = signal<Range>({ from: 0, to: 0 });
export const sort = signal<Sort>("appearance");
/* Sort by the time waiting for this reason only; null: for any. */
export const sortReason = signal<string | null>(null);
export const group = signal<Group>("name");
export const filter = signal("");
/* The filter as passed to the server. */
export function filterWords(): string | undefined {
    return filter.value.trim().split(/\s+/).join(" ") || undefined;
}
export const pinned = signal<readonly number[]>([]);
export const folded = signal<ReadonlySet<string>>(new Set());
export const unfolded = signal<ReadonlySet<number>>(new Set());
export const scroll = signal(0);

export const selected = signal<Place | null>(null);
export const span = signal<Span | null>(null);
/* A log or CPU sample on the selected lane, selected in place of a span. */
export const mark = signal<{ kind: MarkKind; number: number } | null>(null);
export const markFacts = signal<MarkFacts | null>(null);
export const range = signal<Area | null>(null);
/* The one-pixel part of a lane that was clicked on because several short spans are drawn in it. */
export const merged = signal<(Range & { kind: Kind; lane: number }) | null>(null);
/* The rectangle of a box zoom in progress, in pixels of the lanes' area. */
export const zoomBox = signal<{ left: number; top: number; right: number; bottom: number } | null>(
    null,
);
/* The spans of the wake-up chain, latest first. */
export const chain = signal<readonly Span[]>([]);
/* The subject of the critical path, in the form of `trail why`'s options: "task=7",
 * "region=parse#3", "goroutine=18", "window=1". */
export const why = signal("");
/* The segments of the critical path that is shown, in time order. */
export const path = signal<readonly { lane: number; begin: number; end: number }[]>([]);
/* The Stacks panel lists the spans that begin in this function; "": no list. */
export const inFunction = signal("");
/* The lanes of the selected finding, in the order of its critical path: they come first. */
export const leads = signal<readonly number[]>([]);
export const hasLeads = () => kind.value === "goroutine" && leads.value.length > 0;
/* Sorts all lanes, also those that came first. */
export function sortBy(name: Sort): void {
    batch(() => {
        sort.value = name;
        leads.value = [];
    });
}
/* The selected finding: its number, from 1, and the lane and span that it is about, if it has a
 * place. */
export const finding = signal<readonly number[]>([]);
/* The lock that the panel of locks shows over time, by its title; "": none. */
export const chosenLock = signal("");
/* The query of the SQL panel. */
const firstQuery =
    "select name, count(*) as goroutines, sum(exec_ns) as exec_ns\nfrom goroutines group by name order by exec_ns desc";
export const query = signal(firstQuery);
/* Spans with this state and reason are highlighted, all others pale. */
export const like = signal<{ state: string; reason: string } | null>(null);

export const tab = signal<Tab | null>(null);
export const palette = signal(false);
export const help = signal(false);
export const follow = signal(false);
/* On a wide screen the selection has a column of its own beside the timeline. */
const wide = matchMedia("(min-width: 1600px)");
const hasColumn = () => wide.matches && parent === globalThis.window;
export const isWide = signal(hasColumn());
wide.addEventListener("change", () => {
    isWide.value = hasColumn();
});
/* On a phone, either the timeline with the findings above it or one panel is shown. */
const phone = matchMedia("(max-width: 480px)");
const isNarrow = signal(phone.matches);
phone.addEventListener("change", () => {
    isNarrow.value = phone.matches;
});
export const isPhone = () => isNarrow.value;
/* On a phone, the cards and each panel hide what they lead to. */
export function showTimeline(): void {
    if (!isPhone()) return;
    tab.value = null;
    overview.value = false;
}
/* On a narrow screen, the cards above the timeline would leave no room for it. */
const hasRoom = !matchMedia("(max-width: 700px)").matches;
/* Whether the ruler has charts below it: how many run and are ready, and the heap. */
export const charts = signal(false);
/* Whether to show lanes of the runtime, and lanes with nothing in the window. */
export const showsRuntime = signal(false);
export const showsIdle = signal(false);
/* Whether the findings above the timeline are unfolded. */
export const overview = signal(hasRoom);
/* The zero of the ruler, in ns; with the axis "wall" it shows wall clock times. */
export const origin = signal(0);
export const axis = signal<"relative" | "wall">("relative");
export const theme = signal<"auto" | "light" | "dark">("auto");
/* A message that is shown for a few seconds and read by screen readers. */
export const message = signal("");

/* The area of the lanes in CSS pixels: including the column of names, excluding the part above
 * them. */
export const size = signal({ width: 800, height: 400 });

export const end = computed(() => Math.max(status.value?.end ?? 0, 1));

/* In a comparison: the range that covers both traces, in this trace's time. */
export const outer = signal<Range | null>(null);
/* The whole range that can be shown. */
export const whole = computed<Range>(() => outer.value ?? { from: 0, to: end.value });

/* MARK: Window and history */

const past: Range[] = [];
let future: Range[] = [];
/* When the current gesture last moved the window, in ms of performance.now(). */
const NEVER = Number.NEGATIVE_INFINITY;
let touched = NEVER;

/* Whether the page was opened without a fragment. */
let isFirst = true;

/* Whether nothing has been done since the page was opened without a fragment. */
export function untouched(): boolean {
    const { from, to } = view.peek();
    const all = whole.peek();
    const isWhole = from === all.from && to === all.to && past.length === 0;
    return isFirst && isWhole && !selected.peek() && !range.peek() && !tab.peek() && !filter.peek();
}

export function clamp(wanted: Range): Range {
    const all = whole.value;
    const length = Math.min(Math.max(wanted.to - wanted.from, 10), (all.to - all.from) * 1.1);
    const from = Math.min(Math.max(wanted.from, all.from - length / 2), all.to - length / 2);
    return { from, to: from + length };
}

/* Moves the window. Moves in quick succession are one gesture, and one step of the history. */
export function moveView(wanted: Range): void {
    const now = performance.now();
    if (now - touched > 700) {
        past.push(view.peek());
        if (past.length > 200) past.shift();
        future = [];
    }
    touched = now;
    view.value = clamp(wanted);
}

/* Moves the window as a separate step of the history. */
export function go(wanted: Range): void {
    touched = NEVER;
    moveView(wanted);
    touched = NEVER;
}

export function back(): void {
    const last = past.pop();
    if (!last) return;
    future.push(view.peek());
    view.value = last;
    touched = performance.now();
}

export function forward(): void {
    const next = future.pop();
    if (!next) return;
    past.push(view.peek());
    view.value = next;
    touched = performance.now();
}

export function zoom(factor: number, at: number): void {
    const { from, to } = view.peek();
    moveView({ from: at - (at - from) * factor, to: at + (to - at) * factor });
}

export function pan(share: number): void {
    const { from, to } = view.peek();
    const by = (to - from) * share;
    moveView({ from: from + by, to: to + by });
}

export function showAll(): void {
    go(whole.peek());
}

/* Shows [from, to] with a margin on both sides, within the trace. */
export function showRange(wanted: Range): void {
    const all = whole.peek();
    const margin = Math.max((wanted.to - wanted.from) * 0.4, 50);
    go({
        from: Math.max(wanted.from - margin, all.from),
        to: Math.min(wanted.to + margin, all.to),
    });
}

export function toggle<T>(set: ReadonlySet<T>, item: T): ReadonlySet<T> {
    const next = new Set(set);
    if (!next.delete(item)) next.add(item);
    return next;
}

/* MARK: The fragment */

const letters: Record<Kind, string> = { goroutine: "g", proc: "p", thread: "t" };

function kindOf(letter: string): Kind {
    return letter === "p" ? "proc" : letter === "t" ? "thread" : "goroutine";
}

/* "running", "waiting/chan receive". */
function sortText(): string {
    const isFor = sort.value === "waiting" && sortReason.value !== null;
    return isFor ? `waiting/${sortReason.value}` : sort.value;
}

function parseSort(text: string): void {
    const slash = text.indexOf("/");
    const name = slash < 0 ? text : text.slice(0, slash);
    sort.value = sorts.find(([known]) => known === name)?.[0] ?? "appearance";
    sortReason.value = slash < 0 ? null : text.slice(slash + 1);
}

/* The parameters of the fragment. */
export const parameters = [
    "w",
    "v",
    "s",
    "g",
    "f",
    "pin",
    "lead",
    "finding",
    "fold",
    "open",
    "y",
    "sel",
    "mark",
    "r",
    "rl",
    "tab",
    "top",
    "c",
    "all",
    "why",
    "fn",
    "lock",
    "sql",
    "o",
    "x",
    "like",
] as const;
export type Parameter = (typeof parameters)[number];

/* The fragment for the current view; the address gets it a moment later. */
export function toFragment(): string {
    const parts = new URLSearchParams();
    const set = (name: Parameter, text: string) => parts.set(name, text);
    const { from, to } = view.value;
    set("w", `${Math.round(from)}-${Math.round(to)}`);
    if (kind.value !== "goroutine") set("v", letters[kind.value]);
    if (sort.value !== "appearance") set("s", sortText());
    if (group.value !== "name") set("g", group.value);
    if (filter.value) set("f", filter.value);
    if (pinned.value.length) set("pin", pinned.value.join("."));
    if (leads.value.length) set("lead", leads.value.join("."));
    if (finding.value.length) set("finding", finding.value.join("."));
    if (folded.value.size) set("fold", JSON.stringify([...folded.value]));
    if (unfolded.value.size) set("open", [...unfolded.value].join("."));
    if (scroll.value) set("y", String(Math.round(scroll.value)));
    const place = selected.value;
    if (place) set("sel", `${letters[place.kind]}${place.lane}.${place.span ?? ""}`);
    if (mark.value) set("mark", `${mark.value.kind[0]}${mark.value.number}`);
    if (range.value) {
        const { from, to, of } = range.value;
        set("r", `${Math.round(from)}-${Math.round(to)}`);
        if (of) set("rl", `${letters[of.kind]}${of.lanes.join(".")}`);
    }
    if (tab.value) set("tab", tab.value);
    if (overview.value !== hasRoom) set("top", overview.value ? "1" : "0");
    if (charts.value) set("c", "1");
    const all = (showsIdle.value ? "i" : "") + (showsRuntime.value ? "r" : "");
    if (all) set("all", all);
    if (why.value) set("why", why.value);
    if (inFunction.value) set("fn", inFunction.value);
    if (chosenLock.value) set("lock", chosenLock.value);
    if (query.value !== firstQuery) set("sql", query.value);
    if (origin.value) set("o", String(Math.round(origin.value)));
    if (axis.value === "wall") set("x", "wall");
    if (like.value) set("like", `${like.value.state}/${like.value.reason}`);
    return parts.toString();
}

export function parseRange(text: string | null): Range | null {
    const match = /^(-?\d+)-(-?\d+)$/.exec(text ?? "");
    const parsed = match ? { from: Number(match[1]), to: Number(match[2]) } : null;
    return parsed && parsed.to > parsed.from ? parsed : null;
}

function parseArea(text: string | null, lanes: string | null): Area | null {
    const parsed = parseRange(text);
    if (!parsed || !lanes) return parsed;
    const numbers = parseNumbers(lanes.slice(1)).slice(0, MOST_IN_AREA);
    return { ...parsed, of: { kind: kindOf(lanes[0]), lanes: numbers } };
}

function parseNumbers(text: string | null): number[] {
    return (text ?? "").split(".").filter(Boolean).map(Number).filter(Number.isSafeInteger);
}

function parseNames(text: string | null): string[] {
    try {
        const names: unknown = JSON.parse(text ?? "[]");
        return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
    } catch {
        return [];
    }
}

function parsePlace(text: string | null): Place | null {
    const match = /^([gpt])(\d+)\.(\d*)$/.exec(text ?? "");
    if (!match) return null;
    const place: Place = { kind: kindOf(match[1]), lane: Number(match[2]) };
    if (match[3]) place.span = Number(match[3]);
    return place;
}

const groups: Group[] = ["none", "name", "creator", "task"];

function parseMark(text: string | null): { kind: MarkKind; number: number } | null {
    const match = /^([ls])(\d+)$/.exec(text ?? "");
    return match && { kind: match[1] === "l" ? "log" : "sample", number: Number(match[2]) };
}

/* Restores the state from the fragment. Returns false if it has no window. */
export function fromFragment(): boolean {
    const parts = new URLSearchParams(location.hash.slice(1));
    const get = (name: Parameter) => parts.get(name);
    const window = parseRange(get("w"));
    isFirst &&= parts.size === 0;
    batch(() => {
        if (window) view.value = window;
        kind.value = kindOf(get("v") ?? "g");
        parseSort(get("s") ?? "");
        const grouped = get("g");
        group.value = groups.find((name) => name === grouped) ?? "name";
        filter.value = get("f") ?? "";
        pinned.value = parseNumbers(get("pin"));
        leads.value = parseNumbers(get("lead"));
        finding.value = parseNumbers(get("finding"));
        folded.value = new Set(parseNames(get("fold")));
        unfolded.value = new Set(parseNumbers(get("open")));
        scroll.value = Number(get("y")) || 0;
        selected.value = parsePlace(get("sel"));
        mark.value = parseMark(get("mark"));
        range.value = parseArea(get("r"), get("rl"));
        tab.value = (get("tab") as Tab | null) ?? null;
        overview.value = parts.has("top") ? get("top") !== "0" : hasRoom;
        charts.value = get("c") === "1";
        showsIdle.value = get("all")?.includes("i") ?? false;
        showsRuntime.value = get("all")?.includes("r") ?? false;
        why.value = get("why") ?? "";
        inFunction.value = get("fn") ?? "";
        chosenLock.value = get("lock") ?? "";
        query.value = get("sql") ?? firstQuery;
        origin.value = Number(get("o")) || 0;
        axis.value = get("x") === "wall" ? "wall" : "relative";
        const alike = get("like")?.split("/");
        like.value = alike ? { state: alike[0], reason: alike.slice(1).join("/") } : null;
    });
    return window !== null;
}

/* MARK: States and messages */

export function stateNumber(name: string): number {
    if (name === "runnable") return RUNNABLE;
    if (name === "running") return RUNNING;
    if (name === "waiting") return WAITING;
    return name.startsWith("syscall ") || name === "blocked" ? 5 : name === "syscall" ? 4 : 0;
}

let fading = 0;
export function say(text: string): void {
    message.value = text;
    clearTimeout(fading);
    fading = setTimeout(() => {
        message.value = "";
    }, 5000);
}
