/* The panels below the timeline, in five groups, each with its largest figure; and the selection
 * next to the timeline. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { GcPanel, ThreadsPanel } from "./analyses";
import { isExplained } from "./culprit";
import { Details } from "./details";
import { Flame } from "./flame";
import { count, withSign } from "./format";
import { isFramed } from "./framed";
import { FunctionsPanel, GoroutinesPanel, SummaryPanel } from "./goroutines";
import { HeatPanel } from "./heat";
import { Close } from "./icons";
import { LatencyPanel } from "./latency";
import { LocksPanel } from "./locks";
import { MmuPanel } from "./mmu";
import { NotesPanel } from "./notes";
import { About, type Scope } from "./panel";
import { PathPanel } from "./path";
import { RangePanel } from "./range";
import { RequestsPanel } from "./requests_panel";
import { ShareButton } from "./share";
import { SqlPanel } from "./sql";
import { isWide, mark, type PanelGroup, panels, range, span, status, type Tab, tab } from "./state";
import { useSteady } from "./steady";
import { summary } from "./summary";
import { inWords, isRecorded, term } from "./words";

const shown: Record<Tab, () => ComponentChildren> = {
    span: () => <Details />,
    range: () => <RangePanel />,
    summary: () => <SummaryPanel />,
    goroutines: () => <GoroutinesPanel />,
    functions: () => <FunctionsPanel />,
    locks: () => <LocksPanel />,
    latency: () => <LatencyPanel />,
    requests: () => <RequestsPanel />,
    path: () => <PathPanel />,
    gc: () => <GcPanel />,
    threads: () => <ThreadsPanel />,
    flame: () => <Flame />,
    heat: () => <HeatPanel />,
    mmu: () => <MmuPanel />,
    sql: () => <SqlPanel />,
    notes: () => (
        <NotesPanel>
            <ShareButton />
        </NotesPanel>
    ),
};

/* What the figures are of, unless the panel names it. */
const scopes: Partial<Record<Tab, Scope>> = {
    summary: "range",
    goroutines: "lanes",
    functions: "lanes",
    locks: "lanes",
    latency: "lanes",
    requests: "whole",
    gc: "range",
    threads: "range",
    flame: "lanes",
    heat: "range",
    mmu: "range",
    sql: "whole",
};

function List(props: { children: ComponentChildren }) {
    const list = useSteady<HTMLDivElement>();
    return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by keys
        <div class="list" tabIndex={0} ref={list}>
            {props.children}
        </div>
    );
}

/* The panel of a group that was last open. */
const lastOf = new Map<PanelGroup, Tab>();

function firstOf(group: PanelGroup): Tab {
    const last = lastOf.get(group);
    if (last && hasUse(last)) return last;
    return (shownPanels().find(([, , , of]) => of === group) ?? panels[0])[0];
}

/* Whether a panel has something to show. The selection of a wide screen has a column of its own, a
 * range is there once it is selected, and a trace of trail record has no garbage collection. */
function hasUse(name: Tab): boolean {
    if (name === tab.value) return true;
    if (name === "span") return !isWide.value;
    if (name === "range") return range.value !== null;
    return (name !== "mmu" && name !== "gc") || !isRecorded();
}

const shownPanels = () => panels.filter(([name]) => hasUse(name));

function shownGroups(): PanelGroup[] {
    return [...new Set(shownPanels().map(([, , , group]) => group))];
}

/* The largest figure of a group of panels. */
function figureOf(group: PanelGroup): string {
    const of = summary.value;
    const text = (key: string) => withSign(of?.tiles.find((tile) => tile.key === key)?.text ?? "");
    if (group === "Data" && status.value) {
        const many = status.value.goroutines;
        return `${count(many)} ${term(many === 1 ? "task" : "tasks")}`;
    }
    if (!of) return "";
    if (group === "Findings") return of.findings.length ? String(of.findings.length) : "none";
    if (group === "Waiting") {
        const open = of.tiles.find(({ key }) => key === "open_waits")?.value;
        return [open && `${count(open)} open`, text("waiting_ns")].filter(Boolean).join(", ");
    }
    if (group === "Requests")
        return text("slowest_task_ns") && `slowest ${text("slowest_task_ns")}`;
    if (group === "CPU") return text("running_ns") && `${text("running_ns")} running`;
    return "";
}

function Figure(props: { of: PanelGroup }) {
    const text = figureOf(props.of);
    if (!text) return null;
    return (
        <span class="faint" aria-hidden="true">
            {text}
        </span>
    );
}

/* The selection, in a column next to the timeline. */
export function Inspector() {
    return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by keys
        <aside class="inspector" aria-label="Selection" tabIndex={0}>
            <Details />
        </aside>
    );
}

/* The explanation of a finding, which the page begins with, leaves the panels their width: it has
 * its tab. */
function hasBeside(): boolean {
    const of = span.value;
    return !isWide.value && (mark.value !== null || (of !== null && !isExplained.value));
}

export function Panels() {
    const height = useSignal(isFramed ? 150 : 250);
    const open = panels.find(([name]) => name === tab.value);
    const of = shownPanels().filter(([, , , group]) => group === open?.[3]);
    const scope = open && scopes[open[0]];
    if (open) lastOf.set(open[3], open[0]);
    return (
        <section class="panels" aria-label="Panels">
            {open && (
                // biome-ignore lint/a11y/useSemanticElements: a separator that can be moved
                <div
                    class="handle"
                    role="separator"
                    aria-orientation="horizontal"
                    aria-label="Height of the panel"
                    aria-valuenow={height.value}
                    aria-valuemin={80}
                    aria-valuemax={1000}
                    tabIndex={0}
                    onPointerDown={(event) =>
                        event.currentTarget.setPointerCapture(event.pointerId)
                    }
                    onPointerMove={(event) => {
                        if (event.buttons)
                            height.value = Math.max(
                                80,
                                Math.min(innerHeight - 240, innerHeight - event.clientY - 30),
                            );
                    }}
                    onKeyDown={(event) => {
                        if (event.key === "ArrowUp") height.value += 40;
                        else if (event.key === "ArrowDown")
                            height.value = Math.max(80, height.value - 40);
                        else return;
                        event.preventDefault();
                        event.stopPropagation();
                    }}
                />
            )}
            <div class="tabs">
                <div class="all" role="tablist" aria-label="Panels">
                    {shownGroups().map((name) => (
                        <button
                            type="button"
                            role="tab"
                            key={name}
                            id={`group-${name}`}
                            aria-selected={open?.[3] === name}
                            aria-controls="panel"
                            onClick={() => {
                                tab.value = open?.[3] === name ? null : firstOf(name);
                            }}
                        >
                            {name}
                            <Figure of={name} />
                        </button>
                    ))}
                </div>
                {range.value && <span class="faint">Figures of the whole trace</span>}
                {open && (
                    <button
                        type="button"
                        class="close"
                        aria-label="Close the panel"
                        onClick={() => {
                            tab.value = null;
                        }}
                    >
                        <Close />
                    </button>
                )}
            </div>
            {open && of.length > 1 && (
                <div class="tabs subs" role="tablist" aria-label={open[3]}>
                    {of.map(([name, text]) => (
                        <button
                            type="button"
                            role="tab"
                            key={name}
                            id={`tab-${name}`}
                            aria-selected={tab.value === name}
                            aria-controls="panel"
                            onClick={() => {
                                tab.value = name;
                            }}
                        >
                            {inWords(text)}
                        </button>
                    ))}
                </div>
            )}
            <div
                id="panel"
                class="panel"
                role="tabpanel"
                aria-label={open && inWords(open[1])}
                hidden={!open}
                style={{ height: `${height.value}px` }}
            >
                {open && <h2 class="hidden">{inWords(open[1])}</h2>}
                {open && (
                    <List key={open[0]}>
                        {scope && <About of={scope} />}
                        {shown[open[0]]()}
                    </List>
                )}
                {open && open[0] !== "span" && hasBeside() && (
                    <section class="beside" aria-label="Selection">
                        <Details />
                    </section>
                )}
            </div>
        </section>
    );
}
