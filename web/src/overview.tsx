/*
 * The first screen: the findings as cards, and the figures that introduce a trace (the tiles of
 * `trail summary --json`), above the timeline. Each leads to its place. The timeline then begins at
 * the worst finding, unless the user has acted before it is known.
 */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { CARDS, showFinding, shownFinding } from "./culprit";
import { Card, Chip } from "./findings";
import { duration, percent, sentence, withSign } from "./format";
import { isFramed } from "./framed";
import { Down, Up } from "./icons";
import { chooseLockOf } from "./locks";
import { showPath } from "./path";
import { jump, useRun } from "./run";
import { isPhone, overview, status, type Tab, tab, untouched } from "./state";
import { type Finding, keyOf, nothingFound, type Summary, summary, type Tile } from "./summary";

/* The panels that show what a command prints. */
const panelOf: Record<string, Tab> = {
    goroutines: "goroutines",
    procs: "heat",
    latency: "latency",
    locks: "locks",
    tasks: "requests",
    gc: "gc",
    mmu: "mmu",
};

/* Figures that the head of the page already has. */
const inHead = new Set(["length_ns", "goroutines"]);
/* The number of figures that fit next to cards, in this order. */
const BESIDE = 4;
const ALONE = 6;
const order = [
    "idle_ns",
    "running_ns",
    "slowest_task_ns",
    "lock_ns",
    "open_waits",
    "gc_cycles",
    "waiting_ns",
    "heap_peak_bytes",
];

export function lead(tile: Tile, origin: number): void {
    const panel = panelOf[tile.command ?? ""];
    if (tile.task !== undefined) {
        showPath(`task=${tile.task}`, "requests");
        return;
    }
    if (panel) tab.value = panel;
    if (tile.begin_ns === undefined || tile.end_ns === undefined) return;
    if (tile.key === "lock_ns" && tile.goroutine != null)
        void chooseLockOf(tile.goroutine, tile.begin_ns).catch(() => {
            /* The panel says why. */
        });
    const from = tile.begin_ns - origin;
    const to = tile.end_ns - origin;
    const around = to > from ? 0 : (status.value?.end ?? 0) / 100;
    jump(tile.goroutine ?? null, Math.max(0, from - around), to + around);
}

/* Moves to the first finding that has a place. */
function beginThere(of: Summary): void {
    const worst = of.findings.find(
        (one) => one.begin_ns !== undefined || one.task !== undefined || one.region !== undefined,
    );
    if (worst && untouched()) showFinding(worst, of.origin_ns);
}

function TileButton(props: { tile: Tile; origin: number }) {
    const { tile, origin } = props;
    const leads = panelOf[tile.command ?? ""] || tile.begin_ns !== undefined;
    return (
        <li>
            <button
                type="button"
                class="tile figure"
                data-key={tile.key}
                title={withSign(tile.note)}
                onClick={() => lead(tile, origin)}
                disabled={!leads}
            >
                <span>{tile.title}</span> <b>{withSign(tile.text)}</b>
            </button>
        </li>
    );
}

/* The figures that are not in the head of the page. */
export function Tiles(props: { of: Tile[]; origin: number; most: number }) {
    const rank = ({ key }: Tile) => (order.indexOf(key) + order.length + 1) % (order.length + 1);
    const all = props.of.filter((tile) => !inHead.has(tile.key));
    const first = [...all].sort((a, b) => rank(a) - rank(b)).slice(0, props.most);
    return (
        <ul class="tiles">
            {all
                .filter((tile) => first.includes(tile))
                .map((tile) => (
                    <TileButton key={tile.key} tile={tile} origin={props.origin} />
                ))}
        </ul>
    );
}

function FoldButton(props: { isFolded: boolean; onFold: () => void }) {
    return (
        <button
            type="button"
            class="quiet icon"
            aria-label="Overview"
            aria-pressed={!props.isFolded}
            title={props.isFolded ? "Unfold the overview" : "Fold the overview"}
            onClick={props.onFold}
        >
            {props.isFolded ? <Down /> : <Up />}
        </button>
    );
}

/* On a phone, where the folded overview has one finding: "1 of 4", which shows the others. */
function Which(props: { all: readonly Finding[]; onClick: () => void }) {
    const { all, onClick } = props;
    const at = all.findIndex((of) => keyOf(of) === shownFinding.value);
    if (all.length < 2) return null;
    return (
        <button type="button" class="quiet which" aria-label="All findings" onClick={onClick}>
            {Math.max(at, 0) + 1} of {all.length}
        </button>
    );
}

function lostText({ activity, begin_ns, end_ns }: Summary): string {
    const lost = activity.lost_ns;
    if (!lost) return "";
    const share = percent(lost, end_ns - begin_ns);
    const part = share === "0.0 %" ? "" : `, ${share} of the time`;
    return sentence(`Some states are unknown for ${duration(lost)}${part}. `);
}

function Answer(props: { of: Summary; isFolded: boolean }) {
    const { tiles, findings, origin_ns } = props.of;
    const { isFolded } = props;
    const Form = isFolded ? Chip : Card;
    const rest = findings.length - CARDS;
    if (findings.length === 0)
        return (
            <>
                <div class="healthy">
                    <h2>{nothingFound(props.of)}</h2>
                    {!isFolded && (
                        <p>
                            {lostText(props.of)}
                            {sentence(`The largest figures: ${props.of.largest}.`)}
                        </p>
                    )}
                </div>
                <Tiles
                    of={tiles}
                    origin={origin_ns}
                    most={props.of.activity.lost_ns ? BESIDE : ALONE}
                />
            </>
        );
    return (
        <>
            <ul class="findings">
                {findings.slice(0, CARDS).map((of) => (
                    <Form
                        key={keyOf(of)}
                        of={of}
                        origin={origin_ns}
                        isAlone={findings.length === 1}
                    />
                ))}
            </ul>
            {rest > 0 && (
                <button
                    type="button"
                    class="textlink"
                    onClick={() => {
                        tab.value = "summary";
                    }}
                >
                    {rest} more
                </button>
            )}
            <Tiles of={tiles} origin={origin_ns} most={BESIDE} />
        </>
    );
}

/* Requests the sums of the whole trace, and keeps them for all parts of the page. */
function useSums() {
    const answer = useRun<Summary>("summary", () => ({}), "whole").value;
    const { value } = answer;
    useEffect(() => {
        if (value?.tiles) summary.value = value;
    }, [value]);
    return answer;
}

/* In a comparison they have no room of their own. */
function Hidden() {
    useSums();
    return null;
}

function Whole() {
    const { value, state } = useSums();
    /* Unfolded by the user although a panel is open. */
    const isWanted = useSignal(false);
    useEffect(() => {
        if (value?.tiles) beginThere(value);
    }, [value]);
    useEffect(() => {
        isWanted.value = false;
    }, [tab.value, isWanted]);
    if (state === "bad" || (value && !value.tiles)) return null;
    /* One line, which has nothing to unfold. */
    const isLine = value?.findings.length === 0 && isPhone();
    const isFolded =
        isLine ||
        !overview.value ||
        (tab.value !== null && tab.value !== "span" && !isWanted.value);
    const onFold = () => {
        if (overview.value && tab.value !== null && tab.value !== "span") isWanted.value = isFolded;
        else overview.value = isFolded;
    };
    return (
        <section class={`overview${isFolded ? " folded" : ""}`} aria-label="Overview">
            {value ? (
                <Answer of={value} isFolded={isFolded} />
            ) : (
                <span class="faint">Adding up the trace …</span>
            )}
            {value && isFolded && <Which all={value.findings} onClick={onFold} />}
            {value && !isLine && <FoldButton isFolded={isFolded} onFold={onFold} />}
        </section>
    );
}

/* Live traces grow: their figures appear when they end and are saved as a file. */
export function hasOverview(): boolean {
    const now = status.value;
    return Boolean(now?.done && now.can_run && now.goroutines > 0);
}

export function Overview() {
    return hasOverview() && (isFramed ? <Hidden /> : <Whole />);
}
