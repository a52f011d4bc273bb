/* The row above the timeline: which lanes are shown, in which order, and what their colours mean. */

import { Choice } from "./choice";
import { count } from "./format";
import { held } from "./held";
import { Fit, Minus, Plus } from "./icons";
import { allLanes, lanes } from "./lanes";
import {
    charts,
    filter,
    finding,
    type Group,
    group,
    hasLeads,
    kind,
    path,
    type Sort,
    showAll,
    sort,
    sortBy,
    sortReason,
    sorts,
    status,
    view,
    zoom,
} from "./state";
import { occurs, waited } from "./summary";
import { legendWaits, reasons, waitClassWord, waitTitle } from "./waits";
import { hasMachines, inWords, isRecorded } from "./words";

const kinds = [
    ["goroutine", "{Tasks}"],
    ["proc", "{Slots}"],
    ["thread", "Threads"],
] as const;

function shownKinds() {
    return kinds.filter(([name]) => name !== "thread" || hasMachines());
}

const LEADS = "leads";

const groups: [Group, string][] = [
    ["name", "function"],
    ["creator", "creator"],
    ["task", "task"],
    ["none", "nothing"],
];

function Lanes() {
    const middle = () => (view.value.from + view.value.to) / 2;
    return (
        <>
            <fieldset class="switch">
                <legend class="hidden">Lanes by</legend>
                {shownKinds().map(([name, text]) => (
                    <button
                        type="button"
                        key={name}
                        aria-pressed={kind.value === name}
                        onClick={() => {
                            kind.value = name;
                        }}
                    >
                        {inWords(text)}
                    </button>
                ))}
            </fieldset>
            <input
                type="search"
                placeholder="Filter lanes"
                title="Lanes with all these words in their names; -word: without it"
                aria-label="Filter lanes"
                value={filter.value}
                onInput={(event) => {
                    filter.value = event.currentTarget.value;
                }}
            />
            <SortBy />
            {kind.value === "goroutine" && sort.value === "waiting" && <SortReason />}
            {kind.value === "goroutine" && (
                <Choice
                    label="group by"
                    value={group.value}
                    options={groups}
                    isSpelledOut
                    onChoose={(name) => {
                        group.value = name as Group;
                    }}
                />
            )}
            <button
                type="button"
                class="quiet icon"
                aria-label="Zoom out"
                onClick={() => zoom(1.6, middle())}
            >
                <Minus />
            </button>
            <button
                type="button"
                class="quiet icon"
                aria-label="Zoom in"
                onClick={() => zoom(0.6, middle())}
            >
                <Plus />
            </button>
            <button
                type="button"
                class="quiet icon"
                aria-label="Whole trace (0)"
                title="Whole trace (0)"
                onClick={showAll}
            >
                <Fit />
            </button>
            <button
                type="button"
                aria-pressed={charts.value}
                title={inWords(
                    "Charts of running and ready {tasks} and of the heap, below the ruler",
                )}
                onClick={() => {
                    charts.value = !charts.value;
                }}
            >
                Charts
            </button>
            {lanes.value.count < allLanes.value && (
                <span class="warn">
                    the first {count(lanes.value.count)} of {count(allLanes.value)} lanes
                </span>
            )}
        </>
    );
}

/* While lanes come first, what they belong to is the order; another choice ends that. */
function SortBy() {
    const [, text] = sorts.find(([name]) => name === sort.value) ?? sorts[0];
    const what = finding.value.length > 0 ? "finding" : "path";
    return (
        <Choice
            label="sort by"
            value={hasLeads() ? LEADS : sort.value}
            options={hasLeads() ? [[LEADS, what], ...sorts] : sorts}
            title={hasLeads() ? `First the lanes of the ${what}, then all by ${text}` : undefined}
            isSpelledOut
            onChoose={(name) => {
                if (name !== LEADS) sortBy(name as Sort);
            }}
        />
    );
}

/* Restricts sorting by waiting time to one reason. Values of options are quoted: the empty one means any reason. */
function SortReason() {
    const now = sortReason.value;
    const all =
        now === null || reasons.value.includes(now) ? reasons.value : [now, ...reasons.value];
    return (
        <Choice
            label="for"
            value={now === null ? "" : `"${now}"`}
            options={[
                ["", "anything"],
                ...all.map((name) => [`"${name}"`, waitTitle(name)] as const),
            ]}
            onChoose={(name) => {
                sortReason.value = name ? name.slice(1, -1) : null;
            }}
        />
    );
}

/* What the timeline shows in addition to the states: the classes of the swatches, their texts, and
 * whether it is in the trace. */
const signs = [
    ["stopped", "stop-the-world", () => ranges() > 0],
    ["marking", "runtime, GC", () => ranges() > 0],
    ["alone", "only one {task} running", () => charts.value],
    ["log", "log", () => Boolean(status.value?.logs)],
    ["sample", "CPU sample", () => Boolean(status.value?.samples)],
    ["bar", "region or task", () => bars("regions") + bars("tasks") > 0],
] as const;

const bars = (of: "ranges" | "regions" | "tasks") => status.value?.bars?.[of] ?? 0;
/* A trace of trail record has no garbage collection. */
const ranges = () => (isRecorded() ? 0 : bars("ranges"));

/* The classes that occur. */
function shownWaits() {
    return legendWaits.filter((name) => waited.value?.has(name) ?? true);
}

const states = [
    ["s2", "running"],
    ["s1", "ready"],
    ["s4", "syscall"],
] as const;

/* Two lines of what is in the trace. */
function Legend() {
    return (
        <span class="legend">
            {states
                .filter(([, text]) => occurs(text))
                .map(([name, text]) => (
                    <span key={name}>
                        <i class={`swatch ${name}`} /> {text}
                    </span>
                ))}
            {shownWaits().map((name) => (
                <span key={name}>
                    <i class={`swatch w-${name}`} /> {waitClassWord(name)}
                </span>
            ))}
            {held.value && (
                <span title={held.value.lock}>
                    <i class={`swatch held${held.value.isInferred ? " inferred" : ""}`} />{" "}
                    {held.value.isInferred ? "holds it (inferred)" : `holds ${held.value.lock}`}
                </span>
            )}
            {path.value.length > 0 && (
                <span>
                    <i class="swatch path" /> critical path
                </span>
            )}
            {signs
                .filter(([, , isThere]) => isThere())
                .map(([name, text]) => (
                    <span key={name}>
                        <i class={`swatch ${name}`} /> {inWords(text)}
                    </span>
                ))}
        </span>
    );
}

export function Toolbar() {
    return (
        <div class="tools lanes">
            <Lanes />
            <Legend />
        </div>
    );
}
