/*
 * The stacks of the selected range: time waiting or running, as a flame graph, as a tree of calls, and by function. The
 * boxes are buttons, so that the keyboard reaches them; a click zooms a box to the whole width.
 */
import { computed, type Signal, signal, useSignal } from "@preact/signals";
import { CallTree } from "./calltree";
import { Choice } from "./choice";
import { nameColor, palette } from "./colors";
import { count, duration, percent, shortName } from "./format";
import { IN_FUNCTION, InFunction, listSpansIn } from "./in_function";
import { openMenu } from "./menu";
import { useRun } from "./run";
import { ALL_FOLDED, foldRuntime, RuntimeLine } from "./runtime";
import { functions, type Matches, matches, type Node, type Profile, sorted, tree } from "./stacks";
import { status, tab } from "./state";
import { Table } from "./table";
import { hasMachines, inWords } from "./words";

const types = [
    ["sync", "waits for {lock_waits}"],
    ["net", "waits for the network"],
    ["syscall", "system calls"],
    ["sched", "scheduling latency, by waker"],
    ["offcpu", "all waits, by waker"],
    ["running", "running, by where it ended"],
    ["cpu", "CPU samples"],
] as const;

/* Those in which the root of a stack is the start function of the goroutine whose time it is. */
const ofGoroutines = ["sync", "net", "syscall", "running"];

/* "": CPU samples if there are any. */
const chosen = signal("");
const type = computed(() => chosen.value || (status.value?.samples ? "cpu" : "sync"));

/* A profile without the runtime's own goroutines, and their time in it. */
function foldedProfile(profile: Profile): [Profile, number] {
    if (!ofGoroutines.includes(type.value)) return [profile, 0];
    const rootOf = (stack: number[]) => profile.frames[stack.at(-1) ?? -1]?.name ?? "";
    const { rows, ofRuntime } = foldRuntime(profile.samples, ({ stack }) => rootOf(stack));
    return [{ ...profile, samples: rows }, ofRuntime.reduce((ns, sample) => ns + sample.ns, 0)];
}

/* What the search finds: the panel with each kind of stacks. */
export const stackEntries = () =>
    types.map(([name, text]) => ({
        what: "stacks",
        text: typeText(name, text),
        run: () => {
            chosen.value = name;
            tab.value = "flame";
        },
    }));

/* In traces of trail record, these waits are read, write, poll and the like. */
function typeText(name: string, text: string): string {
    return name === "net" && !hasMachines()
        ? "waits for pipes, sockets, the network"
        : inWords(text);
}

const samples = (many: number) => `${count(many)} ${many === 1 ? "sample" : "samples"}`;

const forms = [
    ["flame", "flame graph"],
    ["tree", "call tree"],
    ["functions", "functions"],
] as const;

interface Placed {
    node: Node;
    x: number;
    width: number;
    depth: number;
    path: Node[];
}

function place(
    node: Node,
    path: Node[],
    x: number,
    width: number,
    depth: number,
    into: Placed[],
): void {
    if (width < 0.0012 || depth > 60) return;
    const own = [...path, node];
    into.push({ node, x, width, depth, path: own });
    let at = x;
    for (const child of sorted(node)) {
        const part = node.value > 0 ? (width * child.value) / node.value : 0;
        place(child, own, at, part, depth + 1, into);
        at += part;
    }
}

function openBoxMenu(event: MouseEvent, name: string, onFocus: (name: string) => void): void {
    event.preventDefault();
    openMenu(event.clientX, event.clientY, shortName(name), [
        [
            { text: IN_FUNCTION, run: () => listSpansIn(name) },
            { text: "only stacks with this function", run: () => onFocus(name) },
        ],
    ]);
}

/* `zoomed`: the names from the root to the box that fills the width. */
function Boxes(props: {
    root: Node;
    zoomed: Signal<string[]>;
    marked: string;
    /* Says what a value is, and of what. */
    tip: (value: number) => string;
    onFocus: (name: string) => void;
}) {
    const { root, zoomed } = props;
    let top = root;
    for (const name of zoomed.value) top = top.children.get(name) ?? top;
    const boxes: Placed[] = [];
    place(top, [], 0, 1, 0, boxes);
    const depth = Math.max(0, ...boxes.map((box) => box.depth));
    const wanted = props.marked.toLowerCase();
    return (
        <div class="boxes" style={{ height: `${(depth + 1) * 19}px` }}>
            {boxes.map((box) => (
                <button
                    type="button"
                    key={box.path.map((node) => node.name).join("\n")}
                    class={wanted && box.node.name.toLowerCase().includes(wanted) ? "marked" : ""}
                    style={{
                        left: `${box.x * 100}%`,
                        width: `${box.width * 100}%`,
                        top: `${box.depth * 19}px`,
                        background: nameColor(
                            shortName(box.node.name).split(".")[0],
                            palette.value.dark,
                        ),
                    }}
                    title={`${box.node.name}\n${props.tip(box.node.value)}`}
                    onContextMenu={(event) => openBoxMenu(event, box.node.name, props.onFocus)}
                    onClick={() => {
                        const inside = box.path.slice(1).map((node) => node.name);
                        zoomed.value = [...zoomed.value, ...inside];
                    }}
                >
                    {shortName(box.node.name)}
                </button>
            ))}
        </div>
    );
}

function Functions(props: {
    profile: Profile;
    useCount: boolean;
    text: (value: number) => string;
    onFocus: (name: string) => void;
}) {
    const { profile, useCount, text } = props;
    return (
        <Table
            name="functions of stacks"
            sort="self"
            columns={[
                { title: "function", value: (row) => row.name, text: (row) => shortName(row.name) },
                {
                    title: "self",
                    value: (row) => row.self,
                    text: (row) => text(row.self),
                    unit: useCount ? "number" : "ns",
                },
                {
                    title: "total",
                    value: (row) => row.total,
                    text: (row) => text(row.total),
                    unit: useCount ? "number" : "ns",
                },
            ]}
            rows={functions(profile, { useCount })}
            empty="No stack has a function."
            onRow={(row) => props.onFocus(row.name)}
        />
    );
}

function noneText(isCount: boolean): string {
    if (!isCount) return "Nothing of this kind happened in this range.";
    return status.value?.samples
        ? "No CPU samples in this range."
        : "The trace has no CPU samples. In Go: pprof.StartCPUProfile while tracing; trail record takes them by itself.";
}

/* The field for what to mark, and the share of the marked functions. */
function Marks(props: {
    words: Signal<string>;
    current: Signal<number>;
    found: Matches;
    all: number;
    /* Whether Enter moves from match to match. */
    steps: boolean;
}) {
    const { words, current, found, all } = props;
    const many = found.keys.length;
    const at = current.value < 0 ? "" : `${count(current.value + 1)} of `;
    const step = (by: 1 | -1) => {
        if (many === 0) return;
        current.value = current.value < 0 && by < 0 ? many - 1 : (current.value + by + many) % many;
    };
    return (
        <>
            <input
                type="search"
                placeholder="Mark functions"
                aria-label="Mark functions"
                title={props.steps ? "Enter: the next match; Shift Enter: the one before" : ""}
                value={words.value}
                onInput={(event) => {
                    words.value = event.currentTarget.value;
                    current.value = -1;
                }}
                onKeyDown={(event) => {
                    if (event.key !== "Enter" || !props.steps) return;
                    event.preventDefault();
                    step(event.shiftKey ? -1 : 1);
                }}
            />
            {words.value.trim() && (
                <span class="faint matches" aria-live="polite">
                    {many === 0
                        ? "no match"
                        : `${at}${count(many)} ${many === 1 ? "match" : "matches"}, ${percent(found.value, all)}`}
                </span>
            )}
        </>
    );
}

export function Flame() {
    const form = useSignal<string>("flame");
    const inverted = useSignal(false);
    const focus = useSignal("");
    const zoomed = useSignal<string[]>([]);
    const words = useSignal("");
    const current = useSignal(-1);
    const answer = useRun<Profile>("profile", () => ({ type: type.value })).value;
    const useCount = type.value === "cpu";
    const [profile, runtime] = answer.value?.samples ? foldedProfile(answer.value) : [null, 0];
    const isAllFolded = runtime > 0 && profile?.samples.length === 0;
    const root = profile
        ? tree(profile, { useCount, inverted: inverted.value, focus: focus.value })
        : null;
    const what = typeText(type.value, types.find(([name]) => name === type.value)?.[1] ?? "");
    const text = (value: number) => (useCount ? samples(value) : duration(value));
    /* "325 ms, 26.3 % of 1.24 s (system calls)" */
    const shareOf = (value: number) =>
        `${percent(value, root?.value ?? 0)} of ${text(root?.value ?? 0)}${useCount ? "" : ` (${what})`}`;
    const tip = (value: number) => `${text(value)}, ${shareOf(value)}`;
    const exactTip = (value: number) =>
        useCount ? tip(value) : `${count(value)} ns, ${shareOf(value)}`;
    const focusOn = (name: string) => {
        focus.value = name;
        zoomed.value = [];
        current.value = -1;
    };
    const found = root ? matches(root, words.value) : { keys: [], value: 0 };
    const isFull = answer.state === "good" && root && root.value > 0;
    return (
        <div class="flame">
            <InFunction />
            <div class="tools">
                <Choice
                    label="Stacks of"
                    value={type.value}
                    options={types.map(([name, text]) => [name, typeText(name, text)] as const)}
                    onChoose={(name) => {
                        chosen.value = name;
                        zoomed.value = [];
                        focus.value = "";
                        current.value = -1;
                    }}
                />
                <Choice
                    label="shown as"
                    value={form.value}
                    options={forms}
                    onChoose={(name) => {
                        form.value = name;
                    }}
                />
                {form.value !== "functions" && (
                    <button
                        type="button"
                        aria-pressed={inverted.value}
                        title="From the innermost functions to their callers"
                        onClick={() => {
                            inverted.value = !inverted.value;
                            zoomed.value = [];
                            current.value = -1;
                        }}
                    >
                        Callers below
                    </button>
                )}
                {form.value !== "functions" && (
                    <Marks
                        words={words}
                        current={current}
                        found={found}
                        all={root?.value ?? 0}
                        steps={form.value === "tree"}
                    />
                )}
                {focus.value && (
                    <button type="button" title={focus.value} onClick={() => focusOn("")}>
                        Only {shortName(focus.value)} ✕
                    </button>
                )}
                {zoomed.value.length > 0 && (
                    <button
                        type="button"
                        onClick={() => {
                            zoomed.value = [];
                        }}
                    >
                        Whole graph
                    </button>
                )}
                {root && !isAllFolded && <span class="faint">{text(root.value)} in all</span>}
            </div>
            <RuntimeLine what={runtime > 0 ? inWords(`${duration(runtime)} in {tasks}`) : ""} />
            {answer.state === "asking" && <p class="empty">Computing …</p>}
            {answer.state === "bad" && <p class="empty">{answer.error}</p>}
            {answer.state === "good" && root?.value === 0 && (
                <p class="empty">{isAllFolded ? ALL_FOLDED : noneText(useCount)}</p>
            )}
            {isFull && form.value === "flame" && (
                <Boxes
                    root={root}
                    zoomed={zoomed}
                    marked={words.value}
                    tip={tip}
                    onFocus={focusOn}
                />
            )}
            {isFull && form.value === "tree" && (
                <CallTree
                    key={`${type.value} ${inverted.value} ${focus.value}`}
                    root={root}
                    text={text}
                    tip={exactTip}
                    found={found}
                    current={current}
                />
            )}
            {isFull && profile && form.value === "functions" && (
                <Functions
                    profile={profile}
                    useCount={useCount}
                    text={text}
                    onFocus={(name) => {
                        focusOn(name);
                        form.value = "tree";
                    }}
                />
            )}
        </div>
    );
}
