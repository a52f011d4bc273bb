/* A tree of calls as a table with rows that unfold. Initially the path to the largest share is
 * open. */
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { percent, shortName } from "./format";
import { IN_FUNCTION, listSpansIn } from "./in_function";
import { keyOf, type Matches, MOST_DEPTH, type Node, sorted } from "./stacks";
import { toggle } from "./state";

/* Rows with at least this share are open at first. */
const OPEN = 0.2;

interface Row {
    node: Node;
    key: string;
    depth: number;
    isOpen: boolean;
}

function isOpenOf(root: Node, node: Node, key: string, toggled: ReadonlySet<string>): boolean {
    return node.value >= OPEN * root.value !== toggled.has(key);
}

/* Returns the toggled rows after everything above the row of a key is opened. */
function opened(root: Node, key: string, toggled: ReadonlySet<string>): ReadonlySet<string> {
    let result = toggled;
    let node: Node | undefined = root;
    let at = "";
    for (const name of key.split("\n").slice(1, -1)) {
        node = node.children.get(name);
        if (!node) break;
        at = keyOf(at, name);
        if (!isOpenOf(root, node, at, result)) result = toggle(result, at);
    }
    return result;
}

function rowsOf(root: Node, toggled: ReadonlySet<string>): Row[] {
    const rows: Row[] = [];
    const add = (node: Node, above: string, depth: number) => {
        const key = keyOf(above, node.name);
        const isOpen = isOpenOf(root, node, key, toggled);
        rows.push({ node, key, depth, isOpen });
        if (!isOpen || depth === MOST_DEPTH) return;
        for (const child of sorted(node)) add(child, key, depth + 1);
    };
    for (const child of sorted(root)) add(child, "", 0);
    return rows;
}

/* `current`: the index of the match that is shown, among all matches; -1: none. */
export function CallTree(props: {
    root: Node;
    text: (value: number) => string;
    /* Says what a value is, and of what. */
    tip: (value: number) => string;
    found: Matches;
    current: Signal<number>;
}) {
    const toggled = useSignal<ReadonlySet<string>>(new Set());
    const shown = useRef<HTMLTableRowElement>(null);
    const { root, text, found } = props;
    const marked = new Set(found.keys);
    const current = found.keys[props.current.value];
    useEffect(() => {
        if (current === undefined) return;
        toggled.value = opened(root, current, toggled.peek());
        requestAnimationFrame(() => shown.current?.scrollIntoView({ block: "nearest" }));
    }, [current]);
    return (
        <div class="table">
            <table class="calls">
                <caption class="hidden">call tree</caption>
                <thead>
                    <tr>
                        <th class="number">total</th>
                        <th class="number">share</th>
                        <th class="number">self</th>
                        <th>function</th>
                    </tr>
                </thead>
                <tbody>
                    {rowsOf(root, toggled.value).map(({ node, key, depth, isOpen }) => (
                        <tr
                            key={key}
                            class={marked.has(key) ? "match" : ""}
                            aria-current={key === current ? "true" : undefined}
                            ref={key === current ? shown : undefined}
                        >
                            <td
                                class="number"
                                data-value={node.value}
                                title={props.tip(node.value)}
                            >
                                {text(node.value)}
                            </td>
                            <td class="number">{percent(node.value, root.value)}</td>
                            <td
                                class="number"
                                data-value={node.self}
                                title={node.self > 0 ? props.tip(node.self) : ""}
                            >
                                {node.self > 0 ? text(node.self) : ""}
                            </td>
                            <td title={node.name} style={{ paddingLeft: `${8 + depth * 14}px` }}>
                                {node.children.size > 0 ? (
                                    <button
                                        type="button"
                                        class="textlink"
                                        aria-expanded={isOpen}
                                        onClick={() => {
                                            toggled.value = toggle(toggled.value, key);
                                        }}
                                    >
                                        {isOpen ? "▾" : "▸"} {shortName(node.name)}
                                    </button>
                                ) : (
                                    shortName(node.name)
                                )}{" "}
                                <button
                                    type="button"
                                    class="textlink more"
                                    aria-label={`${IN_FUNCTION}: ${node.name}`}
                                    title={`List ${IN_FUNCTION}`}
                                    onClick={() => listSpansIn(node.name)}
                                >
                                    spans
                                </button>
                            </td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}
