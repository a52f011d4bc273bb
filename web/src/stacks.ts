/* Trees of calls, and sums by function, of a profile (`trail profile --json`). */

export interface Profile {
    type: string;
    count: number;
    ns: number;
    frames: { name: string; file: string; line: number }[];
    samples: { count: number; ns: number; stack: number[] }[];
}

export interface Node {
    name: string;
    value: number;
    /* The part in which it was the innermost function: in an inverted tree only at the top. */
    self: number;
    children: Map<string, Node>;
}

export interface TreeOptions {
    /* Count samples, not time. */
    useCount: boolean;
    /* The tree begins with the innermost functions, and their callers are below. */
    inverted: boolean;
    /* Only stacks that contain this function, where the tree begins; "": all. */
    focus: string;
}

/* The names of a stack's functions, innermost first, as in the profile. */
function functionsOf(profile: Profile, stack: number[]): string[] {
    return stack.map((frame) => profile.frames[frame]?.name ?? "?");
}

/* The names of a stack from the root of the tree; empty: not in the tree. Stacks begin with the
 * innermost frame. */
function namesOf(profile: Profile, stack: number[], options: TreeOptions): string[] {
    const inner = functionsOf(profile, stack);
    if (!options.focus) return options.inverted ? inner : inner.reverse();
    /* For a recursive function, the outermost call includes everything called, the innermost one
     * all callers. */
    const at = options.inverted ? inner.indexOf(options.focus) : inner.lastIndexOf(options.focus);
    if (at < 0) return [];
    return options.inverted ? inner.slice(at) : inner.slice(0, at + 1).reverse();
}

function worth(sample: { count: number; ns: number }, options: { useCount: boolean }): number {
    return options.useCount ? sample.count : sample.ns;
}

/* In an inverted tree, the child of the root for a stack's innermost function; undefined: the tree
 * begins further out. */
function innermostAt(root: Node, profile: Profile, stack: number[]): Node | undefined {
    const [name] = functionsOf(profile, stack.slice(0, 1));
    return root.children.get(name);
}

export function tree(profile: Profile, options: TreeOptions): Node {
    const root: Node = { name: "all", value: 0, self: 0, children: new Map() };
    for (const sample of profile.samples) {
        const value = worth(sample, options);
        const names = namesOf(profile, sample.stack, options);
        if (options.focus && names.length === 0) continue;
        let node = root;
        root.value += value;
        for (const name of names) {
            let child = node.children.get(name);
            if (!child) {
                child = { name, value: 0, self: 0, children: new Map() };
                node.children.set(name, child);
            }
            child.value += value;
            node = child;
        }
        const inner = options.inverted ? innermostAt(root, profile, sample.stack) : node;
        if (inner) inner.self += value;
    }
    return root;
}

export interface FunctionSum {
    name: string;
    /* The part in which it was the innermost function, and in which it was anywhere in the
     * stack. */
    self: number;
    total: number;
}

export function functions(profile: Profile, options: { useCount: boolean }): FunctionSum[] {
    const sums = new Map<string, FunctionSum>();
    for (const sample of profile.samples) {
        const value = worth(sample, options);
        const names = functionsOf(profile, sample.stack);
        for (const name of new Set(names)) {
            const sum = sums.get(name) ?? { name, self: 0, total: 0 };
            sum.total += value;
            if (names[0] === name) sum.self += value;
            sums.set(name, sum);
        }
    }
    return [...sums.values()];
}

export function sorted(node: Node): Node[] {
    return [...node.children.values()].sort((a, b) => b.value - a.value);
}

/* The names from the root to a node, as one text. */
export function keyOf(above: string, name: string): string {
    return `${above}\n${name}`;
}

export interface Matches {
    /* The keys of the nodes whose names contain the text, in row order. */
    keys: string[];
    /* Their total, each part once: calls of a match within a match count as part of the outer
     * one. */
    value: number;
}

/* The depth to which a tree of calls is shown. */
export const MOST_DEPTH = 200;

export function matches(root: Node, text: string): Matches {
    const wanted = text.trim().toLowerCase();
    const found: Matches = { keys: [], value: 0 };
    const look = (node: Node, above: string, depth: number, isInside: boolean) => {
        const key = keyOf(above, node.name);
        const isMatch = node.name.toLowerCase().includes(wanted);
        if (isMatch) found.keys.push(key);
        if (isMatch && !isInside) found.value += node.value;
        if (depth === MOST_DEPTH) return;
        for (const child of sorted(node)) look(child, key, depth + 1, isInside || isMatch);
    };
    if (wanted) for (const child of sorted(root)) look(child, "", 0, false);
    return found;
}
