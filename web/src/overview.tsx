/*
 * The first screen: the figures that a trace is introduced with (the tiles of `trail summary --json`) and the findings,
 * above the timeline. Each leads to its place. The timeline then begins at what looks worst, if that is a part of the trace
 * and nothing was done before it is known.
 */
import { useEffect } from "preact/hooks";
import { type Finding, Findings } from "./findings";
import { withSign } from "./format";
import { isFramed } from "./framed";
import { laneOf, reveal } from "./lanes";
import { showPath } from "./path";
import { jump, useRun } from "./run";
import { overview, panels, showRange, status, type Tab, tab, untouched } from "./state";

export interface Tile {
    key: string;
    title: string;
    value: number;
    text: string;
    note: string;
    command?: string;
    begin_ns?: number;
    end_ns?: number;
    goroutine?: number;
    task?: number;
}

interface Summary {
    origin_ns: number;
    tiles: Tile[];
    findings: Finding[];
    largest: string;
}

/* The panels that have what a command prints. */
const panelOf: Record<string, Tab> = {
    goroutines: "goroutines",
    procs: "heat",
    latency: "latency",
    locks: "locks",
    tasks: "requests",
    gc: "more",
    mmu: "mmu",
};

/* What the head of the page has already. */
const inHead = new Set(["length_ns", "goroutines"]);
const FINDINGS = 3;

function lead(tile: Tile, origin: number): void {
    const panel = panelOf[tile.command ?? ""];
    if (tile.task !== undefined) {
        showPath(`task=${tile.task}`, "requests");
        return;
    }
    if (panel) tab.value = panel;
    if (tile.begin_ns === undefined || tile.end_ns === undefined) return;
    const from = tile.begin_ns - origin;
    const to = tile.end_ns - origin;
    const around = to > from ? 0 : (status.value?.end ?? 0) / 100;
    jump(tile.goroutine ?? null, Math.max(0, from - around), to + around);
}

/* A window that is most of the trace shows no more than the whole. */
const MOST = 0.5;

/* Moves to the worst case of the first finding that has one. */
function beginThere(of: Summary): void {
    const worst = of.findings.find((one) => one.begin_ns !== undefined);
    if (!worst || !untouched()) return;
    const from = worst.begin_ns - of.origin_ns;
    const to = worst.end_ns - of.origin_ns;
    if (to - from > (status.peek()?.end ?? 0) * MOST) return;
    showRange({ from, to: Math.max(to, from + 1) });
    const lane = worst.goroutine == null ? null : laneOf(worst.goroutine, from);
    if (lane !== null) void reveal(lane);
}

function TileButton(props: { tile: Tile; origin: number }) {
    const { tile, origin } = props;
    const panel = panels.find(([name]) => name === panelOf[tile.command ?? ""]);
    return (
        <li>
            <button
                type="button"
                class="tile"
                data-key={tile.key}
                title={withSign(tile.note)}
                onClick={() => lead(tile, origin)}
                disabled={!panel && tile.begin_ns === undefined}
            >
                <span class="faint">{tile.title}</span> <b>{withSign(tile.text)}</b>
                <span class="note faint">{withSign(tile.note)}</span>
            </button>
        </li>
    );
}

/* Beside an open panel a low window has no room for the findings (app.css): a tile stands for them. */
function FindingsTile(props: { findings: Finding[] }) {
    const { findings } = props;
    const texts = findings.map(({ text }) => withSign(text));
    return (
        <li class="instead">
            <button
                type="button"
                title={texts.join("\n")}
                onClick={() => {
                    tab.value = "summary";
                }}
            >
                <b>
                    {findings.length} {findings.length === 1 ? "finding" : "findings"}
                </b>
                <span class="note faint">{texts[0]}</span>
            </button>
        </li>
    );
}

function Answer(props: { of: Summary }) {
    const { tiles, findings, largest, origin_ns } = props.of;
    return (
        <>
            <ul class="tiles">
                {findings.length > 0 && <FindingsTile findings={findings} />}
                {tiles
                    .filter((tile) => !inHead.has(tile.key))
                    .map((tile) => (
                        <TileButton key={tile.key} tile={tile} origin={origin_ns} />
                    ))}
            </ul>
            {findings.length === 0 ? (
                <p>No known problem found. The largest figures: {withSign(largest)}.</p>
            ) : (
                <Findings findings={findings.slice(0, FINDINGS)} origin={origin_ns} />
            )}
            {findings.length > FINDINGS && (
                <button
                    type="button"
                    class="textlink"
                    onClick={() => {
                        tab.value = "summary";
                    }}
                >
                    all {findings.length} findings
                </button>
            )}
        </>
    );
}

function Whole() {
    const answer = useRun<Summary>("summary", () => ({}), "whole").value;
    const { value } = answer;
    useEffect(() => {
        if (value?.tiles) beginThere(value);
    }, [value]);
    if (answer.state === "bad" || (answer.value && !answer.value.tiles)) return null;
    return (
        <section class="overview" aria-label="Overview">
            {answer.value ? (
                <Answer of={answer.value} />
            ) : (
                <p class="faint">Adding up the trace …</p>
            )}
        </section>
    );
}

/* Live traces grow: their figures are there when they end, and are saved as a file. */
export function hasOverview(): boolean {
    const now = status.value;
    return !isFramed && Boolean(now?.done && now.can_run && now.goroutines > 0);
}

export function Overview() {
    return hasOverview() && overview.value ? <Whole /> : null;
}
