/* The page: header, timeline, and panels below it. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { type MarkFacts, type MarkKind, stateNames } from "./api";
import { Choice } from "./choice";
import { Details } from "./details";
import { Flame } from "./flame";
import { bytes, count, duration, eventsText, shortName } from "./format";
import { isFramed } from "./framed";
import { FunctionsPanel, GoroutinesPanel, SummaryPanel } from "./goroutines";
import { HeatPanel } from "./heat";
import { held } from "./held";
import { shownKeys } from "./keys";
import { allLanes, lanes, laneTitle } from "./lanes";
import { LatencyPanel } from "./latency";
import { LocksPanel } from "./locks";
import { ContextMenu } from "./menu";
import { MmuPanel } from "./mmu";
import { MorePanel } from "./more";
import { NotesPanel } from "./notes";
import { Empty, isEmpty, isNoTrace, NoTrace } from "./nothing";
import { hasOverview, Overview } from "./overview";
import { SearchBox } from "./palette";
import { PathPanel } from "./path";
import { RangePanel } from "./range";
import { RequestsPanel } from "./requests_panel";
import { timeText } from "./ruler";
import { markWord } from "./select";
import { ShareButton, ShareMenu } from "./share";
import { spanWords } from "./span_words";
import { SqlPanel } from "./sql";
import {
    filter,
    follow,
    type Group,
    group,
    help,
    kind,
    mark,
    markFacts,
    message,
    offline,
    overview,
    palette,
    panels,
    path,
    range,
    type Sort,
    selected,
    showAll,
    sort,
    sortReason,
    sorts,
    span,
    status,
    type Tab,
    tab,
    theme,
} from "./state";
import { useSteady } from "./steady";
import { Timeline } from "./timeline";
import { reasons, waitTitle } from "./waits";
import { OpenButton, SourceBanner } from "./wasm/open";
import { hasMachines, inWords, term } from "./words";

/* MARK: The head */

function Facts() {
    const now = status.value;
    if (!now) return <span class="faint">opening …</span>;
    if (isNoTrace()) return null;
    const version = now.version ? `Go 1.${now.version} format` : "";
    const text = [
        version,
        duration(now.end),
        eventsText(now.events),
        `${count(now.goroutines)} ${term(now.goroutines === 1 ? "task" : "tasks")}`,
    ]
        .filter(Boolean)
        .join(" · ");
    return (
        <span class="faint facts" title={text}>
            {text}
        </span>
    );
}

function Progress() {
    const now = status.value;
    if (!now || now.done) return null;
    const known = now.size_bytes > 0;
    // Events can be put in order when all of their generation have arrived: about a second's.
    const held = now.live ? Math.max(0, (now.received_bytes ?? 0) - now.read_bytes) : 0;
    const share = known ? Math.min(1, now.read_bytes / now.size_bytes) : undefined;
    const text =
        `${now.live ? "arriving" : "reading"}: ${bytes(now.read_bytes + held)}` +
        (known ? ` of ${bytes(now.size_bytes)}` : "") +
        (held > 0 ? `, ${bytes(held)} of them of a generation that has not ended` : "");
    return (
        <div class="progress">
            <progress value={share} max={1} aria-label="Reading the trace" />
            <span class="faint" title={text}>
                {text}
            </span>
            {now.live && (
                <button
                    type="button"
                    aria-pressed={follow.value}
                    onClick={() => {
                        follow.value = !follow.value;
                    }}
                >
                    {follow.value ? "Pause" : "Follow"}
                </button>
            )}
        </div>
    );
}

const kinds = [
    ["goroutine", "{Tasks}"],
    ["proc", "{Slots}"],
    ["thread", "Threads"],
] as const;

function shownKinds() {
    return kinds.filter(([name]) => name !== "thread" || hasMachines());
}

const groups: [Group, string][] = [
    ["name", "start function"],
    ["creator", "creator"],
    ["task", "task"],
    ["none", "nothing"],
];

function Lanes() {
    return (
        <div class="tools">
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
                placeholder="filter lanes, -word: not"
                aria-label="Filter lanes"
                value={filter.value}
                onInput={(event) => {
                    filter.value = event.currentTarget.value;
                }}
            />
            <Choice
                label="sort by"
                value={sort.value}
                options={sorts}
                onChoose={(name) => {
                    sort.value = name as Sort;
                }}
            />
            {kind.value === "goroutine" && sort.value === "waiting" && <SortReason />}
            {kind.value === "goroutine" && (
                <Choice
                    label="group by"
                    value={group.value}
                    options={groups}
                    onChoose={(name) => {
                        group.value = name as Group;
                    }}
                />
            )}
            <button type="button" onClick={showAll}>
                Whole trace (0)
            </button>
            {hasOverview() && (
                <button
                    type="button"
                    aria-pressed={overview.value}
                    onClick={() => {
                        overview.value = !overview.value;
                    }}
                >
                    Overview
                </button>
            )}
            <Legend />
            {lanes.value.count < allLanes.value && (
                <span class="warn">
                    the first {count(lanes.value.count)} of {count(allLanes.value)} lanes
                </span>
            )}
        </div>
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

/* What the timeline shows over and above the states: the classes of their swatches, and their texts. */
const signs = [
    ["stopped", "stop-the-world pause"],
    ["marking", "GC"],
    ["alone", "only one {task} running"],
    ["log", "log"],
    ["sample", "CPU sample"],
    ["bar", "region or task"],
] as const;

/* A trace of trail record has no garbage collection. */
function shownSigns() {
    const isRecorded = status.value?.made_by === "trail record";
    return signs.filter(([name]) => !isRecorded || (name !== "stopped" && name !== "marking"));
}

function Legend() {
    return (
        <span class="legend">
            {stateNames.slice(1).map((name, i) => (
                <span key={name}>
                    <i class={`swatch s${i + 1}`} /> {inWords(name)}
                </span>
            ))}
            {shownSigns().map(([name, text]) => (
                <span key={name}>
                    <i class={`swatch ${name}`} /> {inWords(text)}
                </span>
            ))}
            {held.value && (
                <span>
                    <i class={`swatch held${held.value.isInferred ? " inferred" : ""}`} /> holds{" "}
                    {held.value.lock}
                    {held.value.isInferred && ", as is inferred"}
                </span>
            )}
            {path.value.length > 0 && (
                <span>
                    <i class="swatch path" /> critical path
                </span>
            )}
        </span>
    );
}

function Head() {
    const next = { auto: "light", light: "dark", dark: "auto" } as const;
    return (
        <header>
            <h1 title={status.value?.title}>
                <b>trail</b> {status.value?.title.split("/").pop() ?? ""}
            </h1>
            <Facts />
            <Progress />
            <span class="space" />
            <OpenButton />
            {status.value && !isNoTrace() && <ShareMenu />}
            <button
                type="button"
                onClick={() => {
                    palette.value = true;
                }}
            >
                Search (/)
            </button>
            <button
                type="button"
                aria-label={`Colours: ${theme.value}`}
                onClick={() => {
                    theme.value = next[theme.value];
                }}
            >
                {{ auto: "◐", light: "☀", dark: "☾" }[theme.value]}
            </button>
            <button
                type="button"
                aria-label="Help"
                onClick={() => {
                    help.value = true;
                }}
            >
                ?
            </button>
        </header>
    );
}

function Banner() {
    const now = status.value;
    if (offline.value)
        return (
            <div class="banner" role="alert">
                {offline.value}
            </div>
        );
    if (now?.error && !isNoTrace())
        return (
            <div class="banner" role="alert">
                Trace damaged; recovered up to the error: {now.error}
            </div>
        );
    return null;
}

/* MARK: Panels */

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
    more: () => <MorePanel />,
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

function List(props: { children: ComponentChildren }) {
    const list = useSteady<HTMLDivElement>();
    return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by keys
        <div class="list" tabIndex={0} ref={list}>
            {props.children}
        </div>
    );
}

function Panels() {
    const height = useSignal(isFramed ? 150 : 250);
    const open = panels.find(([name]) => name === tab.value);
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
            <div class="tabs" role="tablist" aria-label="Panels">
                {panels.map(([name, text]) => (
                    <button
                        type="button"
                        role="tab"
                        key={name}
                        id={`tab-${name}`}
                        aria-selected={tab.value === name}
                        aria-controls="panel"
                        onClick={() => {
                            tab.value = tab.value === name ? null : name;
                        }}
                    >
                        {inWords(text)}
                    </button>
                ))}
            </div>
            <div
                id="panel"
                class="panel"
                role="tabpanel"
                aria-labelledby={open ? `tab-${open[0]}` : undefined}
                hidden={!open}
                style={{ height: `${height.value}px` }}
            >
                {open && <h2 class="hidden">{inWords(open[1])}</h2>}
                {open && <List key={open[0]}>{shown[open[0]]()}</List>}
                {open && open[0] !== "span" && (span.value || mark.value) && (
                    <section class="beside" aria-label="Selection">
                        <Details />
                    </section>
                )}
            </div>
        </section>
    );
}

/* MARK: Help, and text for screen readers */

function Help() {
    const shown = shownKeys();
    const groups = [...new Set(shown.map((key) => key.group))];
    return (
        // biome-ignore lint/a11y/noStaticElementInteractions: a click beside the box closes it, as Escape does
        // biome-ignore lint/a11y/useKeyWithClickEvents: Escape
        <div
            class="veil"
            onClick={(event) => {
                if (event.target === event.currentTarget) help.value = false;
            }}
        >
            <div class="help" role="dialog" aria-label="Keys">
                <h2>Keys</h2>
                <div class="columns">
                    {groups.map((name) => (
                        <section key={name}>
                            <h3>{name}</h3>
                            <dl>
                                {shown
                                    .filter((key) => key.group === name)
                                    .map((key) => (
                                        <div key={key.shown}>
                                            <dt>
                                                <kbd>{key.shown}</kbd>
                                            </dt>
                                            <dd>{inWords(key.text)}</dd>
                                        </div>
                                    ))}
                            </dl>
                        </section>
                    ))}
                    <section>
                        <h3>Mouse</h3>
                        <dl>
                            <div>
                                <dt>Drag</dt>
                                <dd>moves the timeline</dd>
                            </div>
                            <div>
                                <dt>Wheel</dt>
                                <dd>
                                    up and down; with Shift to the sides; with Ctrl, or two fingers,
                                    zooms
                                </dd>
                            </div>
                            <div>
                                <dt>Drag over the ruler</dt>
                                <dd>selects a range of all lanes</dd>
                            </div>
                            <div>
                                <dt>Shift drag</dt>
                                <dd>over lanes: selects a range of these lanes</dd>
                            </div>
                            <div>
                                <dt>Ctrl drag</dt>
                                <dd>zooms to the box</dd>
                            </div>
                            <div>
                                <dt>Right click</dt>
                                <dd>shows the commands for what is there</dd>
                            </div>
                            <div>
                                <dt>Double click</dt>
                                <dd>zooms to the span</dd>
                            </div>
                        </dl>
                    </section>
                </div>
                <button
                    type="button"
                    onClick={() => {
                        help.value = false;
                    }}
                >
                    Close (Esc)
                </button>
            </div>
        </div>
    );
}

/* Number of frames in the text for screen readers; the panel shows all. */
const SPOKEN = 12;

function spokenMark(of: MarkKind, facts: MarkFacts): string {
    const whose = facts.goroutine ? ` of ${laneTitle("goroutine", facts.goroutine)}` : "";
    const frames = facts.stack.slice(0, SPOKEN).map((frame) => shortName(frame.function) || "?");
    const more = facts.stack.length - frames.length;
    return (
        `${markWord(of)}${whose} at ${timeText(facts.at, 1)}${facts.text && `, ${facts.text}`}: ` +
        (frames.length ? `in ${frames.join(", called by ")}` : "no stack is known") +
        (more > 0 ? `, and ${more} more` : "")
    );
}

/* The selection as text for screen readers, which cannot read the canvases. */
function Mirror() {
    const now = span.value;
    const place = selected.value;
    const text =
        mark.value && markFacts.value
            ? spokenMark(mark.value.kind, markFacts.value)
            : now && place
              ? `${laneTitle(place.kind, now)}: ${spanWords(now, ", ", "")}, ` +
                `${duration(now.end - now.begin)}, span ${now.span + 1} of ${now.spans}` +
                (now.waker ? `, woken by ${laneTitle("goroutine", now.waker)}` : "")
              : range.value
                ? `selected ${duration(range.value.to - range.value.from)}`
                : "";
    return (
        <div class="hidden" aria-live="polite">
            {message.value || text}
        </div>
    );
}

export function App() {
    const live = status.value?.live && !status.value.done && status.value.events === 0;
    return (
        <>
            <Head />
            <SourceBanner />
            <Banner />
            {isNoTrace() ? (
                <NoTrace />
            ) : (
                <main>
                    <Overview />
                    {isEmpty() ? (
                        <Empty />
                    ) : (
                        <>
                            <Lanes />
                            <Timeline />
                        </>
                    )}
                    {live && <p class="wait">Waiting for the first events …</p>}
                    <Panels />
                    <ContextMenu />
                </main>
            )}
            {message.value && <div class="message">{message.value}</div>}
            <Mirror />
            {palette.value && <SearchBox />}
            {help.value && <Help />}
        </>
    );
}
