/* What has changed between two traces, in a sentence: requests, and the waits for locks, from the rows of `trail diff`. */
import { count, duration } from "./format";
import { waitClassOf } from "./waits";
import { inWords } from "./words";

export interface Figures {
    value: number;
    count?: number;
    p50?: number;
    p99?: number;
    max?: number;
}

export interface Metric {
    of: string;
    metric: string;
    /* The metric in words. */
    figure: string;
    name: string;
    unit: string;
    a: Figures | null;
    b: Figures | null;
    change: number;
}

/* The change from which a task is worth a sentence, more than the 1/16 to which medians of many are exact;
 * and the change below which a row counts as unchanged. */
const WORTH = 0.1;
const NOTHING = 0.01;

export function isChanged({ a, b, change }: Metric): boolean {
    const most = Math.max(Math.abs(a?.value ?? 0), Math.abs(b?.value ?? 0));
    return most > 0 && Math.abs(change) >= NOTHING * most;
}

/* "3.1 times faster"; "": as fast, or not known of both. */
function speed(before = 0, now = 0): string {
    if (!before || !now || Math.abs(now - before) < WORTH * before) return "";
    const times = (now < before ? before / now : now / before).toPrecision(3);
    return `${Number(times)} times ${now < before ? "faster" : "slower"}`;
}

/* "task request 2.81 times faster (median about 9.00 ms, now 3.20 ms)"; where the median is as before, the slowest. */
function speedOf({ metric, name, a, b }: Metric): string {
    const figures = (before = 0, now = 0) => `${duration(before)}, now ${duration(now)}`;
    const usual = speed(a?.p50, b?.p50);
    if (usual) return `${metric} ${name} ${usual} (median about ${figures(a?.p50, b?.p50)})`;
    const slowest = speed(a?.max, b?.max);
    return slowest && `slowest ${metric} ${name} ${slowest} (${figures(a?.max, b?.max)})`;
}

/* What a row is about: "threads". */
export function partOf({ of }: Metric): string {
    if (of === "whole") return "whole trace";
    return of === "goroutines" ? inWords("{tasks}") : of;
}

/* "mutex cache_mu", "sync.(*Mutex).Lock in main.get": not something through which work arrives. */
function isLock({ of, metric, name }: Metric): boolean {
    if (of !== "locks" || metric !== "lock.wait") return false;
    return /Mutex\)/.test(name) || waitClassOf(name.split(" ")[0]) === "lock";
}

/* Above this, a percentage is harder to grasp than a factor. */
const MANY_TIMES = 10;

/* "+12.5 %", "−99.9 %", "2,361 times". */
export function changeText(before: number, change: number): string {
    const times = (before + change) / before;
    if (before > 0 && times >= MANY_TIMES) return `${count(Math.round(times))} times`;
    const percent = (100 * change) / before;
    const text = percent.toFixed(1).replace("100.0", "100").replace("-", "−");
    return `${percent > 0 ? "+" : ""}${text} %`;
}

/* "waits for mutex cache_mu −99.9 % (78.4 ms, now 47.5 µs)", "waits for sync.(*Mutex).Lock in get, called by work, are gone" */
function waits({ name: place, a, b, change }: Metric): string {
    const name = place.includes(" < ") ? `${place.replaceAll(" < ", ", called by ")},` : place;
    const [before, now] = [a?.value ?? 0, b?.value ?? 0];
    if (!before) return `waits for ${name} are new (${duration(now)})`;
    if (!now) return `waits for ${name} are gone (${duration(before)})`;
    return `waits for ${name} ${changeText(before, change)} (${duration(before)}, now ${duration(now)})`;
}

/* What the program did for its users comes first. */
const order = ["tasks", "regions", "locks", "goroutines"];

export function inOrder(rows: readonly Metric[]): Metric[] {
    const rank = ({ of }: Metric) => (order.indexOf(of) + order.length + 1) % (order.length + 1);
    return [...rows].sort((a, b) => rank(a) - rank(b));
}

const bySize = (x: Metric, y: Metric) => Math.abs(y.change) - Math.abs(x.change);

/* The tasks that changed most; without tasks the regions, without those the whole trace; and the
 * lock that changed most. */
export function verdictOf(rows: readonly Metric[]): string {
    const kinds = ["tasks", "regions"].map((of) =>
        rows.filter((row) => row.of === of && /^(task|region)$/.test(row.metric)),
    );
    const timed = kinds.find((some) => some.length > 0) ?? [];
    const whole = rows.find((row) => row.of === "whole" && row.metric === "duration");
    const speeds = [...timed].sort(bySize).map(speedOf).filter(Boolean).slice(0, 2);
    const lock = rows.filter(isLock).sort(bySize)[0];
    const all = Math.max(whole?.a?.value ?? 0, whole?.b?.value ?? 0);
    const locks = lock && Math.abs(lock.change) >= NOTHING * all ? [waits(lock)] : [];
    const text = [...speeds, ...locks].join("; ");
    /* It begins with a word of its own, as names keep their case. */
    if (text) return text[0].toUpperCase() + text.slice(1);
    const [a, b] = [whole?.a?.value ?? 0, whole?.b?.value ?? 0].map(duration);
    const what = timed.length > 0 ? `No ${timed[0].metric} (median, slowest) or lock` : "No lock";
    return `${what} changed by ${100 * WORTH} % or more; the traces are ${a} and ${b} long`;
}
