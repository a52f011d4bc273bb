/* A tree of calls as a table, whose rows unfold. At first the way to what takes most is open. */
import { useSignal } from "@preact/signals";
import { percent, shortName } from "./format";
import { IN_FUNCTION, listSpansIn } from "./in_function";
import { type Node, sorted } from "./stacks";
import { toggle } from "./state";

/* Rows with at least this share are open at first. */
const OPEN = 0.2;
const MOST_DEPTH = 200;

interface Row {
    node: Node;
    key: string;
    depth: number;
    isOpen: boolean;
}

function rowsOf(root: Node, toggled: ReadonlySet<string>): Row[] {
    const rows: Row[] = [];
    const add = (node: Node, above: string, depth: number) => {
        const key = `${above}\n${node.name}`;
        const isOpen = node.value >= OPEN * root.value !== toggled.has(key);
        rows.push({ node, key, depth, isOpen });
        if (!isOpen || depth === MOST_DEPTH) return;
        for (const child of sorted(node)) add(child, key, depth + 1);
    };
    for (const child of sorted(root)) add(child, "", 0);
    return rows;
}

export function CallTree(props: { root: Node; text: (value: number) => string }) {
    const toggled = useSignal<ReadonlySet<string>>(new Set());
    const { root, text } = props;
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
                        <tr key={key}>
                            <td class="number" title={String(node.value)}>
                                {text(node.value)}
                            </td>
                            <td class="number">{percent(node.value, root.value)}</td>
                            <td class="number" title={String(node.self)}>
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
