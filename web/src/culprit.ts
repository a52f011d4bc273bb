/*
 * The place of a finding: its window, and the culprit in it. For a finding about a task, a region
 * or a wait, the culprit is the longest step of the critical path, whichever lane that is on, or
 * the holder of the lock for which it waits. For a finding about a lock that others wait for, it is
 * the holder at that time, also if that itself waits for another.
 */
import { batch, computed, effect } from "@preact/signals";
import { api, type Query, type Span, type SpanList } from "./api";
import { heldAt, heldInFinding } from "./held";
import { holdsOf, onLanes } from "./holds";
import { laneOf, lanesLoaded, reveal } from "./lanes";
import { leadWith, type Path, queryOf, type Segment, segmentsOf } from "./path";
import { jump } from "./run";
import { select, selectAt, showSelection } from "./select";
import {
    end,
    finding,
    isWide,
    kind,
    leads,
    mark,
    path,
    type Range,
    selected,
    showAll,
    showRange,
    showTimeline,
    span,
    status,
    tab,
    view,
    why,
} from "./state";
import { type Finding, keyOf, shown, summary } from "./summary";
import { waitClassOf } from "./waits";

export const shownFinding = computed(() => shown.value && keyOf(shown.value));
/* Whether the selection is what it is about: its span, or no span if it has none. */
export const isExplained = computed(() => {
    const [number, lane, its] = finding.value;
    if (!shown.value || !number || mark.value) return false;
    if (its === undefined) return selected.value === null;
    return span.value?.lane === lane && span.value?.span === its;
});
/* Whether the selection, with its explanation, is in view: its card is then shorter. */
export const isTold = computed(() => isExplained.value && (isWide.value || tab.value === "span"));
/* At most so many findings have cards. */
export const CARDS = 3;

/* Notes what the finding has selected. */
function noteExplained(): void {
    const now = selected.peek();
    if (now?.span !== undefined) finding.value = [finding.peek()[0] ?? 0, now.lane, now.span];
}

/*
 * Findings whose place is a wait that a holder may be responsible for: a lock, or for open-wait
 * anything that another goroutine holds.
 */
const ofHolders = new Set([
    "lock-contention",
    "lock-serialises",
    "long-hold",
    "holder-not-running",
    "open-wait",
]);
/* Those whose place is the longest wait for something: what ended it is on the path of the waiter. */
const ofWaits = new Set([
    ...ofHolders,
    "bottleneck",
    "pool-too-small",
    "queue",
    "permits",
    "slow-producer",
    "hand-offs",
    "sleeper",
    "imbalance",
    "once",
    "slow-answer",
    "slow-peer",
    "slow-wait",
]);

/* The request for a path; null: the finding names the place itself. */
function pathQuery(of: Finding, origin: number): Query | null {
    if (of.task !== undefined) return queryOf(`task=${of.task}`);
    if (of.region !== undefined) return queryOf(`region=${of.region}`);
    if (!ofWaits.has(of.kind) || of.goroutine == null) return null;
    const [from, to] = [(of.begin_ns ?? 0) - origin, (of.end_ns ?? 0) - origin];
    return { ...queryOf(`goroutine=${of.goroutine}`, true), from, to };
}

const lengthOf = (of: Segment) => of.end_ns - of.begin_ns;

/* The waits in a range for a lock that a lane holds: the longest ones first, `all` is their number. */
async function waitsFor(holder: number, from: number, to: number): Promise<SpanList> {
    const query = { kind: "goroutine", holder, from, to: Math.max(to, from + 1) };
    return api.spans(query).catch(() => ({ all: 0, spans: [] }));
}

/*
 * Where holds are not recorded, draws the culprit's hold within its span. It lasts until the first
 * wait for its lock ends, if the culprit ended that wait; open-wait is about waits that do not end.
 */
async function showInferred(of: Finding, its: Span): Promise<void> {
    if (!ofHolders.has(of.kind) || of.kind === "open-wait" || heldInFinding.peek()) return;
    const { all, spans } = await waitsFor(its.lane, its.begin, its.end);
    const [first] = spans
        .filter(({ held_by: by }) => by?.lane === its.lane && by.span === its.span && by.inferred)
        .sort((a, b) => a.end - b.end);
    /* One that is not listed may end first. */
    if (!first || all > spans.length) return;
    const { ender } = await api.span("goroutine", first.lane, { span: first.span });
    const now = span.peek();
    const isMoved = now?.lane !== its.lane || now.span !== its.span;
    if (ender?.lane !== its.lane || !isShown(of) || isMoved || heldInFinding.peek()) return;
    const hold = { from: Math.max(first.begin, its.begin), to: Math.min(first.end, its.end) };
    const byLane = new Map([[its.lane, [hold]]]);
    heldInFinding.value = { lock: "the lock", isInferred: true, byLane };
}

/* The goroutine's lane comes first, then those that wait for a lock that it holds. */
async function lanesOfCulprit(id: number, part: Range): Promise<number[]> {
    kind.value = "goroutine";
    await lanesLoaded();
    const lane = laneOf(id, part.from);
    if (lane === null) return [];
    const { spans } = await waitsFor(lane, part.from, part.to);
    return [lane, ...spans.map((one) => one.lane)];
}

/* The lane that holds the lock for which a goroutine waits; null: it waits for none, or nothing has it. */
async function holderOf(id: number | null, at: number): Promise<number | null> {
    const lane = id === null ? null : laneOf(id, at);
    if (lane === null) return null;
    const its = await api.span("goroutine", lane, { at: Math.round(at) }).catch(() => null);
    return its?.held_by?.lane ?? null;
}

/* The lane of the culprit at the middle of a path's longest step. */
async function worstLane(of: Finding, step: Segment, at: number): Promise<number | null> {
    const holder = ofHolders.has(of.kind)
        ? (heldAt(heldInFinding.peek(), at) ?? (await holderOf(of.goroutine ?? null, at)))
        : null;
    return holder ?? (await holderOf(step.goroutine, at)) ?? laneOf(step.goroutine, at);
}

/* Shows a path. Its lanes come first, after the waiting goroutine's, then those that wait for the
 * same lock; its longest step is selected. */
async function showPathOf(of: Path, finding: Finding, isWanted: () => boolean): Promise<void> {
    const waiter = finding.goroutine;
    kind.value = "goroutine";
    await lanesLoaded();
    const segments = segmentsOf(of);
    const worst = of.segments.reduce((a, b) => (lengthOf(b) > lengthOf(a) ? b : a));
    const at = worst.begin_ns - of.origin_ns;
    /* In the middle, because at its start the previous step has not ended. */
    const middle = at + lengthOf(worst) / 2;
    const lane = await worstLane(finding, worst, middle);
    const waits = lane === null ? null : await waitsFor(lane, at, at + lengthOf(worst));
    if (!isWanted()) return;
    batch(() => {
        path.value = segments;
        const first = waiter == null ? null : laneOf(waiter, at);
        const waiting = waits?.spans.map((one) => one.lane) ?? [];
        const lanes = [...segments.map((segment) => segment.lane), lane, ...waiting];
        leadWith([first, ...lanes].filter((one) => one !== null));
        showPart({ from: of.begin_ns - of.origin_ns, to: of.end_ns - of.origin_ns });
    });
    if (lane === null || !(await selectAt("goroutine", lane, middle, false))) return;
    noteExplained();
    void reveal(lane);
}

async function showPlace(of: Finding, origin: number, isWanted: () => boolean): Promise<void> {
    if (of.begin_ns === undefined || of.end_ns === undefined) return;
    const part = { from: Math.max(0, of.begin_ns - origin), to: of.end_ns - origin };
    const lanes = of.goroutine == null ? [] : await lanesOfCulprit(of.goroutine, part);
    if (!isWanted()) return;
    leadWith(lanes);
    if (!(await jump(of.goroutine ?? null, part.from, part.to))) return;
    showPart(part);
    if (of.goroutine != null) noteExplained();
    else {
        select(null);
        showSelection();
    }
}

/* If the window would be most of the trace, shows all of it. */
function showPart(part: Range): void {
    if (part.to - part.from > end.peek() / 2) showAll();
    else showRange({ from: part.from, to: Math.max(part.to, part.from + 1) });
}

/* The finding's number in the overview, from 1; 0: not one of the whole trace. */
function numberOf(of: Finding | null): number {
    const all = summary.value?.findings ?? [];
    return of ? 1 + all.findIndex((one) => keyOf(one) === keyOf(of)) : 0;
}

const isShown = (of: Finding) => shownFinding.peek() === keyOf(of);

/* Requests the path of a finding; undefined: it has none. */
async function pathOf(of: Finding, origin: number): Promise<Path | undefined> {
    const query = status.peek()?.can_run ? pathQuery(of, origin) : null;
    const found = query && (await api.run<Path>("why", query).catch(() => null));
    return found?.segments?.length ? found : undefined;
}

/* Draws the recorded holds of its lock on the lanes, from its worst case on if there are very many. */
async function showHolds(of: Finding, origin: number): Promise<void> {
    const lock = (of.object ?? "").replace(/ to (read|write) /, " ");
    heldInFinding.value = null;
    if (waitClassOf(lock.split(" ")[0]) !== "lock") return;
    await lanesLoaded();
    let found = await holdsOf(lock, 0);
    if (found.isCut) found = await holdsOf(lock, Math.max(0, (of.begin_ns ?? 0) - origin));
    if (isShown(of)) heldInFinding.value = onLanes(lock, found.of, false);
}

/* Shows where a finding is. */
export function showFinding(of: Finding, origin: number): void {
    showTimeline();
    batch(() => {
        shown.value = of;
        finding.value = [numberOf(of)];
        leads.value = [];
        path.value = [];
        if (of.task !== undefined) why.value = `task=${of.task}`;
        else if (of.region !== undefined) why.value = `region=${of.region}`;
    });
    const holds = showHolds(of, origin).catch(() => {
        /* Without them spans show what waits. */
    });
    const [place, window] = [selected.peek(), view.peek()];
    /* What the user has selected or moved meanwhile stays. */
    const isWanted = () => isShown(of) && selected.peek() === place && view.peek() === window;
    void Promise.all([pathOf(of, origin), holds]).then(([found]) => {
        if (!isWanted()) return;
        void (found ? showPathOf(found, of, isWanted) : showPlace(of, origin, isWanted));
    });
}

/* Shows the finding that the address names without moving the window: the address contains the
 * window and the selection, too. */
export function keepFinding(): void {
    effect(() => {
        if (!shown.value || !isExplained.value || !span.value) return;
        void showInferred(shown.value, span.value).catch(() => {
            /* Without it the inspector shows what waits. */
        });
    });
    effect(() => {
        const [number] = finding.value;
        const all = summary.value;
        if (!all || number === 0) return;
        const named = all.findings[number - 1] ?? null;
        if ((named && keyOf(named)) === shownFinding.peek()) return;
        shown.value = named;
        path.value = [];
        heldInFinding.value = null;
        if (!named) return;
        void showHolds(named, all.origin_ns).catch(() => {
            /* As above. */
        });
        void Promise.all([pathOf(named, all.origin_ns), lanesLoaded()]).then(([found]) => {
            if (found && isShown(named)) path.value = segmentsOf(found);
        });
    });
}
