/*
 * The selection: a span or mark, its neighbours, and the chain of its wake-ups.
 */
import { batch, effect } from "@preact/signals";
import { api, type Kind, type LaneRef, type MarkFacts, type MarkKind, type Span } from "./api";
import { laneTitle, layout, reveal } from "./lanes";
import {
    chain,
    finding,
    go,
    isPhone,
    isWide,
    kind,
    leads,
    mark,
    markFacts,
    type Place,
    type Range,
    say,
    scroll,
    selected,
    showRange,
    span,
    tab,
    view,
} from "./state";
import { inWords } from "./words";

let asking: AbortController | null = null;

/* The number of selections so far: an answer that arrives after a newer one was made is not taken. */
let made = 0;

/* Requests the span of `selected` whenever it changes. */
export function keepSpan(): void {
    effect(() => {
        const place = selected.value;
        asking?.abort();
        if (!place || place.span === undefined) {
            span.value = null;
            return;
        }
        const mine = new AbortController();
        asking = mine;
        api.span(place.kind, place.lane, { span: place.span }, mine.signal)
            .then((answer) => {
                span.value = answer;
            })
            .catch((error: Error) => {
                if (!mine.signal.aborted) say(error.message);
            });
    });
}

/* An open list stays open: the panels show the selection next to it. A phone has no room for
 * anything next to the timeline. */
export function showSelection(lane?: number): void {
    if (tab.peek() || isWide.peek() || isPhone()) return;
    tab.value = "span";
    if (lane !== undefined) requestAnimationFrame(() => requestAnimationFrame(() => reveal(lane)));
}

export function select(place: Place | null): void {
    made++;
    batch(() => {
        selected.value = place;
        mark.value = null;
        chain.value = [];
    });
    if (place?.span === undefined) return;
    showSelection(place.lane);
}

/* Nothing is selected, and no finding shown, because the page shows something else. */
export function leaveFinding(): void {
    select(null);
    finding.value = [];
    leads.value = [];
}

/*
 * Selects the span of a lane at a time; `move` also moves the window to it. Returns false if it is
 * not selected.
 */
export async function selectAt(
    of: Kind,
    lane: number,
    at: number,
    move: boolean,
    mine = ++made,
): Promise<boolean> {
    try {
        const found = await api.span(of, lane, { at: Math.max(0, Math.round(at)) });
        if (mine !== made) return false;
        if (kind.value !== of) {
            kind.value = of;
            scroll.value = 0;
        }
        select({ kind: of, lane, span: found.span });
        span.value = found;
        if (move) show(found);
        return true;
    } catch (error) {
        say((error as Error).message);
        return false;
    }
}

/* Moves the window only if the span is outside it, or too short to be seen. */
export function show(of: Span): void {
    const { from, to } = view.peek();
    const length = of.end - of.begin;
    if (of.begin < from || of.end > to || length < (to - from) / 500)
        showRange({ from: of.begin, to: Math.max(of.end, of.begin + 1) });
    void reveal(of.lane);
}

/* Selects the span that takes most of a range of a lane. Returns false if it is not selected. */
export async function selectLongest(of: Kind, lane: number, range: Range): Promise<boolean> {
    const mine = ++made;
    const { from, to } = range;
    const query = { kind: of, lanes: String(lane), from, to: Math.max(to, from + 1), count: 1 };
    const { spans } = await api.spans(query).catch(() => ({ spans: [] }));
    const [longest] = spans;
    if (mine !== made) return false;
    return longest?.span === undefined
        ? selectAt(of, lane, from, false, mine)
        : selectSpan(of, lane, longest.span, false, mine);
}

export async function selectSpan(
    of: Kind,
    lane: number,
    number: number,
    move = true,
    mine = ++made,
): Promise<boolean> {
    try {
        const found = await api.span(of, lane, { span: number });
        if (mine !== made) return false;
        kind.value = of;
        select({ kind: of, lane, span: number });
        span.value = found;
        if (move) show(found);
        return true;
    } catch (error) {
        say((error as Error).message);
        return false;
    }
}

export function follow(to: LaneRef | undefined, of: Kind = "goroutine"): void {
    if (!to) return;
    if (to.span !== undefined) void selectSpan(of, to.lane, to.span);
    else if (span.value) void selectAt(of, to.lane, span.value.begin, true);
}

export function neighbour(step: number): void {
    const now = span.value;
    if (!now || !selected.value) return;
    const next = now.span + step;
    if (next >= 0 && next < now.spans) void selectSpan(selected.value.kind, now.lane, next);
}

export function nextLane(step: 1 | -1): void {
    const now = span.value;
    if (!now || !selected.value) return;
    const next = layout.peek().beside(now.lane, step);
    if (next !== undefined)
        void selectAt(selected.value.kind, next, now.begin, false).then(() => reveal(next));
}

/* MARK: Logs and samples */

let askingMark: AbortController | null = null;

/* Requests the facts of `mark` whenever it changes. */
export function keepMark(): void {
    effect(() => {
        const now = mark.value;
        askingMark?.abort();
        markFacts.value = null;
        if (!now) return;
        const mine = new AbortController();
        askingMark = mine;
        api.mark(now.kind, { mark: now.number }, mine.signal)
            .then((answer) => {
                markFacts.value = answer;
            })
            .catch((error: Error) => {
                if (!mine.signal.aborted) say(error.message);
            });
    });
}

function takeMark(of: MarkKind, found: MarkFacts): void {
    if (!found.goroutine) return;
    const { lane } = found.goroutine;
    batch(() => {
        kind.value = "goroutine";
        select({ kind: "goroutine", lane });
        mark.value = { kind: of, number: found.mark };
        showSelection(lane);
    });
    const { from, to } = view.peek();
    if (found.at < from || found.at > to)
        showRange({ from: found.at - (to - from) / 4, to: found.at + (to - from) / 4 });
    void reveal(lane);
}

/* Selects the first mark of a lane at or after a time. */
export async function selectMarkAt(of: MarkKind, lane: number, at: number): Promise<void> {
    const mine = ++made;
    try {
        const found = await api.mark(of, { lane, at });
        if (mine === made) takeMark(of, found);
    } catch (error) {
        say((error as Error).message);
    }
}

export async function selectMark(of: MarkKind, number: number): Promise<void> {
    const mine = ++made;
    try {
        const found = await api.mark(of, { mark: number });
        if (mine === made) takeMark(of, found);
    } catch (error) {
        say((error as Error).message);
    }
}

/* Goes to the next log or sample of the selected lane, whichever is first; from a mark to the next of its kind. */
export async function nextMark(step: 1 | -1): Promise<void> {
    const now = mark.value;
    const facts = markFacts.value;
    if (now && facts) {
        const number = step > 0 ? facts.after : facts.before;
        if (number < 0) say(`There is no other ${markWord(now.kind)} on this lane.`);
        else await selectMark(now.kind, number);
        return;
    }
    const place = selected.value;
    if (place?.kind !== "goroutine") {
        say(inWords("Select a {task} first."));
        return;
    }
    const at = Math.max(0, Math.round(span.value?.begin ?? view.value.from));
    const kinds = ["log", "sample"] as const;
    const found = await Promise.all(
        kinds.map((of) => api.mark(of, { lane: place.lane, at }).catch(() => null)),
    );
    const first = kinds
        .map((of, i) => ({ of, facts: found[i] }))
        .filter((one) => one.facts !== null)
        .sort((a, b) => (a.facts?.at ?? 0) - (b.facts?.at ?? 0))[0];
    if (first?.facts) takeMark(first.of, first.facts);
    else say("No further log or CPU sample on this lane.");
}

export function markWord(of: MarkKind): string {
    return of === "log" ? "log" : "CPU sample";
}

/* MARK: Wake-up chain */

const MOST_STEPS = 40;

/*
 * Follows wake-ups back from the selected span: to its waker's span or, if no waker is known, to
 * the preceding span. Stores the spans in `chain`, latest first.
 */
export async function followWakeUps(): Promise<void> {
    const place = selected.value;
    /* The details of what was just selected may not have arrived. */
    let now = span.value;
    if (!now && place?.span !== undefined)
        now = await api.span(place.kind, place.lane, { span: place.span });
    if (!now) {
        say("Select a span first.");
        return;
    }
    const way: Span[] = [];
    while (now && way.length < MOST_STEPS) {
        way.push(now);
        const by: LaneRef | undefined = now.waker ?? now.ender;
        if (by?.span !== undefined) now = await api.span("goroutine", by.lane, { span: by.span });
        else if (now.span > 0) now = await api.span("goroutine", now.lane, { span: now.span - 1 });
        else break;
    }
    chain.value = way;
    const [last, before] = way;
    if (!before) {
        say("No waker is known.");
        return;
    }
    say(`${way.length} steps back, to ${laneTitle("goroutine", way[way.length - 1])}`);
    /* Where the first arrow ends. */
    const at = last.waker || before.lane === last.lane ? last.begin : last.end;
    const { from, to } = view.peek();
    if (at < from || at > to) go({ from: at - (to - from) / 2, to: at + (to - from) / 2 });
    await reveal(before.lane);
    await reveal(last.lane);
}
