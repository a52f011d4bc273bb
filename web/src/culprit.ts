/*
 * The place of a finding: its window, and in that the culprit. Where a finding is of a task, a region or a wait, the
 * culprit is on the critical path of that: the longest step of it, whichever lane it is on.
 */
import { batch, signal } from "@preact/signals";
import { api, type Query } from "./api";
import { type Finding, keyOf, sentenceOf } from "./findings";
import { laneOf, lanesLoaded, reveal } from "./lanes";
import { type Path, queryOf, type Segment, segmentsOf } from "./path";
import { jump } from "./run";
import { selectAt } from "./select";
import {
    end,
    kind,
    leads,
    path,
    type Range,
    selected,
    showAll,
    showRange,
    status,
    why,
} from "./state";

/* The finding that is shown, by its key. */
export const shownFinding = signal("");
/* Its text, and the span that it is about, for the inspector. */
export const explanation = signal("");
export const explained = signal<{ lane: number; span: number } | null>(null);

/* Notes what was selected for the finding. */
function noteExplained(): void {
    const now = selected.peek();
    explained.value = now?.span === undefined ? null : { lane: now.lane, span: now.span };
}

/* The findings whose place is the longest wait for a lock: what ended it is on the path of the waiter. */
const ofLocks = new Set(["lock-contention", "lock-serialises", "bottleneck"]);

/* How a path is asked for; null: the finding names the place itself. */
function pathQuery(of: Finding, origin: number): Query | null {
    if (of.task !== undefined) return queryOf(`task=${of.task}`);
    if (of.region !== undefined) return queryOf(`region=${of.region}`);
    if (!ofLocks.has(of.kind) || of.goroutine == null) return null;
    const [from, to] = [(of.begin_ns ?? 0) - origin, (of.end_ns ?? 0) - origin];
    return { ...queryOf(`goroutine=${of.goroutine}`, true), from, to };
}

const lengthOf = (of: Segment) => of.end_ns - of.begin_ns;

/* Shows a path. Its lanes come first, behind the waiting goroutine's; its longest step is selected. */
async function showPathOf(of: Path, waiter?: number | null): Promise<void> {
    kind.value = "goroutine";
    await lanesLoaded();
    const segments = segmentsOf(of);
    const worst = of.segments.reduce((a, b) => (lengthOf(b) > lengthOf(a) ? b : a));
    const at = worst.begin_ns - of.origin_ns;
    const lane = laneOf(worst.goroutine, at);
    batch(() => {
        path.value = segments;
        const first = waiter == null ? null : laneOf(waiter, at);
        const lanes = segments.map((segment) => segment.lane);
        leads.value = [...new Set(first === null ? lanes : [first, ...lanes])].slice(0, MOST_LEADS);
        showPart({ from: of.begin_ns - of.origin_ns, to: of.end_ns - of.origin_ns });
    });
    if (lane === null) return;
    /* In its middle: at its begin the step before has not ended. */
    await selectAt("goroutine", lane, at + lengthOf(worst) / 2, false);
    noteExplained();
    void reveal(lane);
}

/* A path of more lanes would leave no room for others. */
const MOST_LEADS = 12;

async function showPlace(of: Finding, origin: number): Promise<void> {
    if (of.begin_ns === undefined || of.end_ns === undefined) return;
    const part = { from: Math.max(0, of.begin_ns - origin), to: of.end_ns - origin };
    await jump(of.goroutine ?? null, part.from, part.to);
    showPart(part);
    noteExplained();
}

/* A window that is most of the trace shows no more than the whole. */
function showPart(part: Range): void {
    if (part.to - part.from > end.peek() / 2) showAll();
    else showRange({ from: part.from, to: Math.max(part.to, part.from + 1) });
}

/* Shows where a finding is. */
export function showFinding(of: Finding, origin: number): void {
    shownFinding.value = keyOf(of);
    explanation.value = sentenceOf(of);
    explained.value = null;
    leads.value = [];
    path.value = [];
    const query = status.peek()?.can_run ? pathQuery(of, origin) : null;
    if (!query) {
        void showPlace(of, origin);
        return;
    }
    if (of.task !== undefined) why.value = `task=${of.task}`;
    else if (of.region !== undefined) why.value = `region=${of.region}`;
    api.run<Path>("why", query)
        .then((found) => {
            if (shownFinding.peek() !== keyOf(of)) return;
            if (found.segments?.length) void showPathOf(found, of.goroutine);
            else void showPlace(of, origin);
        })
        .catch(() => void showPlace(of, origin));
}
