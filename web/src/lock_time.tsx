/*
 * A lock over time: how many waited for it, which goroutine held it, each wait, and the state at
 * one moment. The waits come from `trail find`; holds come from logs in recordings, or are inferred
 * from the goroutine that ended each wait.
 */
import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Frame } from "./api";
import { Breaking } from "./breaking";
import { nameColor, palette } from "./colors";
import { duration } from "./format";
import { type Hold, heldInPanel, inferHolds } from "./held";
import { type Holds, holdsOf, logNames, noHolds, onLanes } from "./holds";
import { laneOf, lanes } from "./lanes";
import { Waiting } from "./panel";
import { named } from "./path";
import { timeText } from "./ruler";
import { jump, useRun } from "./run";
import { end, type Range, view } from "./state";
import { inWords } from "./words";

/* If there are very many waits, the first ones are shown. */
const MOST_WAITS = 20000;
const MOST_ROWS = 50;

/* Identifies a lock: kind and name, or, in traces of Go, the stacks of the waits and, except for
 * mutexes, of the calls that ended them. */
export interface LockId {
    name: string;
    /* The goroutine that holds it when the trace ends, if known. */
    holder?: number;
    can_be_held: boolean;
    wait_kind?: string;
    object?: string;
    waited?: Frame[];
    woken?: Frame[];
}

interface Hit {
    goroutine: number;
    group: string;
    begin_ns: number;
    end_ns: number;
    steps: {
        wait_kind?: string;
        object?: string;
        unfinished: boolean;
        stack: Frame[];
        waker?: number;
        waker_stack?: Frame[];
    }[];
}

/* In ns since the first event. */
export interface Wait extends Range {
    goroutine: number;
    group: string;
    unfinished: boolean;
    /* The goroutine that ended it; undefined: none in the trace. */
    waker?: number;
}

/* MARK: Waits and holds */

function patternOf(of: LockId): string {
    /* Special characters of a pattern are replaced by "*"; hits are compared afterwards. */
    const plain = (text: string) => text.replace(/[[\]|*]/g, "*");
    if (!of.wait_kind) return "block[sync*]";
    const names = logNames(`${of.wait_kind} ${of.object ?? ""}`);
    return `block[${names.map(plain).join("|")}]`;
}

function beginsWith(stack: Frame[] | undefined, top: Frame[] | undefined): boolean {
    return (top ?? []).every(
        (frame, i) => frame.function === stack?.[i]?.function && frame.line === stack[i].line,
    );
}

function isOf(lock: LockId, [step]: Hit["steps"]): boolean {
    if (lock.wait_kind) return step.wait_kind === lock.wait_kind && step.object === lock.object;
    /* A mutex is the same lock, whichever release ends the wait. */
    const isWoken = lock.can_be_held || beginsWith(step.waker_stack, lock.woken);
    return beginsWith(step.stack, lock.waited) && isWoken;
}

/* "mutex cache_mu"; empty: it has no name. */
const lockName = (of: LockId) => (of.wait_kind && of.object ? `${of.wait_kind} ${of.object}` : "");

/* In ms, so that a gesture is one request. */
const REST = 200;

/* The holds of a lock: all, or if very many, the first ones in the timeline's window. */
function useHolds(of: LockId): Holds {
    const holds = useSignal(noHolds);
    const isMany = useSignal(false);
    useSignalEffect(() => {
        let isOld = false;
        if (lanes.value.count === 0) return;
        const from = isMany.value ? Math.max(0, Math.floor(view.value.from)) : 0;
        const timer = setTimeout(
            () => {
                holdsOf(lockName(of), from, of.holder)
                    .then((found) => {
                        if (isOld) return;
                        holds.value = found;
                        isMany.value ||= found.isCut;
                    })
                    .catch(() => {
                        /* Without them, holders are inferred. */
                    });
            },
            isMany.peek() ? REST : 0,
        );
        return () => {
            isOld = true;
            clearTimeout(timer);
        };
    });
    return holds.value;
}

/* If there are very many holds: which are shown, and how to see others. */
function ShownHolds(props: { of: Holds }) {
    const { isCut, from, to } = props.of;
    if (!isCut) return null;
    const until = Math.min(to, end.value);
    const step = Math.max(1, (until - from) / 1000);
    return (
        <p class="warn">
            Of very many holds those that end from {timeText(from, step)} to {timeText(until, step)}{" "}
            are shown: move or zoom the timeline to see others.
        </p>
    );
}

/* MARK: A moment */

export interface Moment {
    waiting: Wait[];
    /* The goroutine that held it, and since when; or the one that ended the first of the current
     * waits. */
    holder?: { goroutine: number; since?: number; isOpen?: boolean };
}

export function momentOf(waits: Wait[], holds: Holds, at: number): Moment {
    const waiting = waits.filter(({ from, to }) => from <= at && at < to);
    const hold = holds.of.find(({ from, to }) => from <= at && at < to);
    if (hold) {
        const { goroutine, from: since, isOpen } = hold;
        return { waiting, holder: { goroutine, since, isOpen } };
    }
    if (at < holds.from || at > holds.to) return { waiting };
    const [next] = waiting.filter(({ waker }) => waker !== undefined).sort((a, b) => a.to - b.to);
    return { waiting, holder: next && { goroutine: next.waker as number } };
}

/* How many wait, from each time on. */
export function queueOf(waits: Wait[]): { at: number; count: number }[] {
    const changes = waits.flatMap(({ from, to }) => [[from, 1] as const, [to, -1] as const]);
    changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const steps: { at: number; count: number }[] = [];
    let count = 0;
    for (const [at, by] of changes) {
        count += by;
        if (steps.at(-1)?.at === at) steps[steps.length - 1].count = count;
        else steps.push({ at, count });
    }
    return steps;
}

function fullName(id: number): string {
    const lane = laneOf(id);
    return named(id, lane === null ? "" : lanes.value.get(lane)?.name);
}

function momentText(of: Moment, canBeHeld: boolean, at: number, step: number): string {
    const { waiting, holder } = of;
    const since = (from: number) => `for ${duration(at - from)}`;
    const some = waiting
        .slice(0, 5)
        .map(({ goroutine, group, from }) => `${named(goroutine, group)} ${since(from)}`);
    const more = waiting.length > some.length ? `, and ${waiting.length - some.length} more` : "";
    const who =
        waiting.length === 0
            ? "nobody waits"
            : `${waiting.length} ${waiting.length === 1 ? "waits" : "wait"}: ${some.join(", ")}${more}`;
    const held = !holder
        ? ""
        : holder.since === undefined
          ? `; the next wait was ended by ${fullName(holder.goroutine)}${canBeHeld ? ", which held it, as is inferred" : ""}`
          : `; held by ${fullName(holder.goroutine)} ${since(holder.since)}${holder.isOpen ? " at least" : ""}`;
    return `At ${timeText(at, step)} ${who}${held}.`;
}

/* MARK: The picture */

function placeIn(all: Range, part: Range): { left: string; width: string } {
    const length = Math.max(1, all.to - all.from);
    return {
        left: `${(100 * (part.from - all.from)) / length}%`,
        width: `${(100 * (part.to - part.from)) / length}%`,
    };
}

/* The number of waiters as an area, 1000 wide and as high as the largest number, growing
 * upwards. */
function areaOf(steps: { at: number; count: number }[], all: Range, most: number): string {
    const length = Math.max(1, all.to - all.from);
    const points = [`M0 ${most}`];
    for (const { at, count } of steps) {
        const x = (1000 * (at - all.from)) / length;
        points.push(`H${x.toFixed(2)}`, `V${most - count}`);
    }
    return `${points.join("")}H1000V${most}Z`;
}

function HoldsOf(props: { of: Hold[]; all: Range }) {
    return (
        <li>
            <span class="rowname">held by</span>
            <div class="track low">
                {props.of.map((hold, i) => {
                    const name = fullName(hold.goroutine);
                    return (
                        <button
                            key={i}
                            type="button"
                            class="region"
                            title={`${name}: ${hold.isOpen ? "to the end of the trace, at least" : "about"} ${duration(hold.to - hold.from)}`}
                            style={{
                                ...placeIn(props.all, hold),
                                background: nameColor(name, palette.value.dark),
                            }}
                            onClick={() => jump(hold.goroutine, hold.from, hold.to)}
                        >
                            {name}
                        </button>
                    );
                })}
            </div>
        </li>
    );
}

function WaitsOf(props: { of: Wait[]; all: Range }) {
    const [first] = props.of;
    return (
        <li data-goroutine={first.goroutine}>
            <span class="rowname">{named(first.goroutine, first.group)}</span>
            <div class="track low">
                {props.of.map((wait) => (
                    <button
                        key={wait.from}
                        type="button"
                        class="region wait-bar"
                        title={
                            `waited ${duration(wait.to - wait.from)}` +
                            (wait.unfinished
                                ? ", to the end of the trace"
                                : wait.waker === undefined
                                  ? ""
                                  : `, ended by ${fullName(wait.waker)}`)
                        }
                        aria-label={`${named(wait.goroutine)} waited ${duration(wait.to - wait.from)}`}
                        style={placeIn(props.all, wait)}
                        onClick={() => jump(wait.goroutine, wait.from, wait.to)}
                    />
                ))}
            </div>
        </li>
    );
}

function byGoroutine(waits: Wait[]): Wait[][] {
    const rows = new Map<number, Wait[]>();
    for (const wait of waits) {
        const row = rows.get(wait.goroutine);
        if (row) row.push(wait);
        else rows.set(wait.goroutine, [wait]);
    }
    return [...rows.values()];
}

function Picture(props: { of: LockId; waits: Wait[]; holds: Holds }) {
    const { waits, holds } = props;
    const steps = useMemo(() => queueOf(waits), [waits]);
    const rows = useMemo(() => byGoroutine(waits), [waits]);
    const worst = steps.reduce((a, b) => (b.count > a.count ? b : a), steps[0]);
    const all = {
        from: Math.min(...[steps[0], ...holds.of].map((of) => ("at" in of ? of.at : of.from))),
        to: Math.max(steps[steps.length - 1].at, ...holds.of.map(({ to }) => to)),
    };
    const pointed = useSignal<number | null>(null);
    const at = pointed.value ?? worst.at;
    const step = Math.max(1, (all.to - all.from) / 1000);
    return (
        <>
            <p aria-live="polite">
                {momentText(momentOf(waits, holds, at), props.of.can_be_held, at, step)}
            </p>
            <ul
                class="waterfall"
                onPointerMove={(event) => {
                    const box = event.currentTarget
                        .querySelector(".track")
                        ?.getBoundingClientRect();
                    if (!box) return;
                    const share = (event.clientX - box.left) / Math.max(1, box.width);
                    pointed.value =
                        share < 0 || share > 1 ? null : all.from + share * (all.to - all.from);
                }}
            >
                <li>
                    <span class="rowname">waiting, up to {worst.count}</span>
                    <div class="track high">
                        <svg viewBox={`0 0 1000 ${worst.count}`} preserveAspectRatio="none">
                            <title>how many waited</title>
                            <path d={areaOf(steps, all, worst.count)} />
                        </svg>
                    </div>
                </li>
                {holds.of.length > 0 && <HoldsOf of={holds.of} all={all} />}
                {rows.slice(0, MOST_ROWS).map((row) => (
                    <WaitsOf key={row[0].goroutine} of={row} all={all} />
                ))}
            </ul>
            {rows.length > MOST_ROWS && (
                <p class="faint">
                    {inWords(`and ${rows.length - MOST_ROWS} more {tasks} that waited later`)}
                </p>
            )}
        </>
    );
}

/* Draws the holders on their lanes while the component is mounted; `inferred` is used if none are
 * recorded. */
function useOnLanes(lock: string, holds: Hold[], inferred: Hold[]): void {
    const known = lanes.value;
    useEffect(() => {
        const isInferred = holds.length === 0;
        heldInPanel.value = onLanes(lock, isInferred ? inferred : holds, isInferred);
        return () => {
            heldInPanel.value = null;
        };
    }, [lock, holds, inferred, known]);
}

export function LockOverTime(props: { of: LockId; title: string }) {
    const { of } = props;
    const answer = useRun<{ origin_ns: number; hits: Hit[] }>("find", () => ({
        pattern: patternOf(of),
        limit: MOST_WAITS,
    })).value;
    const holds = useHolds(of);
    const { value } = answer;
    const waits = useMemo<Wait[]>(
        () =>
            (value?.hits ?? [])
                .filter(({ steps }) => isOf(of, steps))
                .map(({ goroutine, group, begin_ns, end_ns, steps: [step] }) => ({
                    goroutine,
                    group,
                    from: begin_ns - (value?.origin_ns ?? 0),
                    to: end_ns - (value?.origin_ns ?? 0),
                    unfinished: step.unfinished,
                    waker: step.waker,
                })),
        [value, of],
    );
    const inferred = useMemo(() => (of.can_be_held ? inferHolds(waits) : []), [of, waits]);
    useOnLanes(props.title, holds.of, inferred);
    if (!value?.hits) return <Waiting answer={answer} />;
    return (
        <section class="lock-time">
            <h2>
                <Breaking of={`${props.title} over time`} />
            </h2>
            {waits.length === 0 ? (
                <p class="empty">No wait for it has both its ends in the range.</p>
            ) : (
                <Picture of={of} waits={waits} holds={holds} />
            )}
            <ShownHolds of={holds} />
            {value.hits.length >= MOST_WAITS && (
                <p class="warn">Of very many waits only the first are shown: select a range.</p>
            )}
        </section>
    );
}
