/*
 * Flame graphs of the selected range: time waiting or running, by stack. The boxes are buttons, so that the keyboard
 * reaches them; a click zooms a box to the whole width.
 */
import { useSignal } from "@preact/signals";
import { Choice } from "./choice";
import { nameColor, palette } from "./colors";
import { count, duration, percent, shortName } from "./format";
import { useRun } from "./run";
import { status } from "./state";

interface Profile {
    type: string;
    count: number;
    ns: number;
    frames: { name: string; file: string; line: number }[];
    samples: { count: number; ns: number; stack: number[] }[];
}

export interface Node {
    name: string;
    value: number;
    count: number;
    children: Map<string, Node>;
}

/* Builds the tree of calls, outermost first; stacks of samples begin with the innermost frame. */
export function tree(profile: Profile, useCount: boolean): Node {
    const root: Node = { name: "all", value: 0, count: 0, children: new Map() };
    for (const sample of profile.samples) {
        const value = useCount ? sample.count : sample.ns;
        let node = root;
        root.value += value;
        root.count += sample.count;
        for (let i = sample.stack.length - 1; i >= 0; i--) {
            const name = profile.frames[sample.stack[i]]?.name ?? "?";
            let child = node.children.get(name);
            if (!child) {
                child = { name, value: 0, count: 0, children: new Map() };
                node.children.set(name, child);
            }
            child.value += value;
            child.count += sample.count;
            node = child;
        }
    }
    return root;
}

const types: [string, string][] = [
    ["sync", "waits for channels and locks"],
    ["net", "waits for the network"],
    ["syscall", "system calls"],
    ["sched", "scheduling latency, by waker"],
    ["offcpu", "all waits, by waker"],
    ["running", "running, by where it ended"],
    ["cpu", "CPU samples"],
];

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
    const children = [...node.children.values()].sort((a, b) => b.value - a.value);
    for (const child of children) {
        const part = node.value > 0 ? (width * child.value) / node.value : 0;
        place(child, own, at, part, depth + 1, into);
        at += part;
    }
}

export function Flame() {
    const type = useSignal("sync");
    const focus = useSignal<string[]>([]);
    const words = useSignal("");
    const answer = useRun<Profile>("profile", () => ({ type: type.value })).value;
    const isCount = type.value === "cpu";
    const root = answer.value?.samples ? tree(answer.value, isCount) : null;
    let top = root;
    for (const name of focus.value) top = top?.children.get(name) ?? top;
    const boxes: Placed[] = [];
    if (top) place(top, [], 0, 1, 0, boxes);
    const depth = Math.max(0, ...boxes.map((box) => box.depth));
    const value = (node: Node) => (isCount ? `${count(node.value)} samples` : duration(node.value));
    const wanted = words.value.toLowerCase();
    return (
        <div class="flame">
            <div class="tools">
                <Choice
                    label="Stacks of"
                    value={type.value}
                    options={types}
                    onChoose={(name) => {
                        type.value = name;
                        focus.value = [];
                    }}
                />
                <input
                    type="search"
                    placeholder="mark functions"
                    aria-label="Mark functions"
                    value={words.value}
                    onInput={(event) => {
                        words.value = event.currentTarget.value;
                    }}
                />
                {focus.value.length > 0 && (
                    <button
                        type="button"
                        onClick={() => {
                            focus.value = [];
                        }}
                    >
                        Whole graph
                    </button>
                )}
                {root && <span class="faint">{value(root)} in all</span>}
            </div>
            {answer.state === "asking" && <p class="empty">Computing …</p>}
            {answer.state === "bad" && <p class="empty">{answer.error}</p>}
            {answer.state === "good" && root?.value === 0 && (
                <p class="empty">
                    {isCount
                        ? status.value?.samples
                            ? "No CPU samples in this range."
                            : "The trace has no CPU samples. In Go: pprof.StartCPUProfile while tracing; trail record takes them by itself."
                        : "Nothing of this kind happened in this range."}
                </p>
            )}
            <div class="boxes" style={{ height: `${(depth + 1) * 19}px` }}>
                {(root?.value ?? 0) > 0 &&
                    boxes.map((box) => (
                        <button
                            type="button"
                            key={box.path.map((node) => node.name).join("\n")}
                            class={
                                wanted && box.node.name.toLowerCase().includes(wanted)
                                    ? "marked"
                                    : ""
                            }
                            style={{
                                left: `${box.x * 100}%`,
                                width: `${box.width * 100}%`,
                                top: `${box.depth * 19}px`,
                                background: nameColor(
                                    shortName(box.node.name).split(".")[0],
                                    palette.value.dark,
                                ),
                            }}
                            title={`${box.node.name}\n${value(box.node)} (${percent(box.node.value, root?.value ?? 0)})`}
                            onClick={() => {
                                const inside = box.path.slice(1).map((node) => node.name);
                                focus.value = [...focus.value, ...inside];
                            }}
                        >
                            {shortName(box.node.name)}
                        </button>
                    ))}
            </div>
        </div>
    );
}
