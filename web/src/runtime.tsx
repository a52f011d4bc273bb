/*
 * The goroutines that Go's runtime starts for itself: one switch shows or folds them among the lanes, in tables and in
 * flame graphs.
 */
import { filter, range, showsRuntime } from "./state";

/* runtime.main is the program's own. */
const RUNTIME = /^runtime[./](?!main$)/;

/* By the name of the start function. */
export function isRuntime(name: string): boolean {
    return RUNTIME.test(name);
}

/*
 * The rows to show, and the runtime's, which the switch shows or folds. Nothing is folded while lanes are selected or a
 * table is filtered by `words`, nor what the filter of lanes matches.
 */
export function foldRuntime<T>(
    rows: T[],
    nameOf: (row: T) => string,
    words = "",
): { rows: T[]; ofRuntime: T[] } {
    if (words || range.value?.of) return { rows, ofRuntime: [] };
    const wanted = filter.value.trim().toLowerCase();
    const isFolded = (name: string) =>
        isRuntime(name) && !(wanted && name.toLowerCase().includes(wanted));
    const ofRuntime = rows.filter((row) => isFolded(nameOf(row)));
    if (showsRuntime.value) return { rows, ofRuntime };
    return { rows: rows.filter((row) => !isFolded(nameOf(row))), ofRuntime };
}

/* In place of a list whose rows are all folded. */
export const ALL_FOLDED = "Everything here belongs to the runtime.";

/* `what` is folded or shown: "10 goroutines". */
export function RuntimeSwitch(props: { what: string }) {
    return (
        <span>
            {showsRuntime.value
                ? "The runtime's own are shown."
                : `${props.what} of the runtime ${/^1 /.test(props.what) ? "is" : "are"} folded.`}{" "}
            <button
                type="button"
                class="textlink"
                onClick={() => {
                    showsRuntime.value = !showsRuntime.value;
                }}
            >
                {showsRuntime.value ? "Fold those of the runtime" : "Show those of the runtime"}
            </button>
        </span>
    );
}

/* The same above a table or a flame graph; nothing if there is nothing of the runtime. */
export function RuntimeLine(props: { what: string }) {
    return props.what ? (
        <p class="about">
            <RuntimeSwitch what={props.what} />
        </p>
    ) : null;
}
