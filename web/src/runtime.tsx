/*
 * The goroutines that Go's runtime starts for itself: one switch shows or folds them among the lanes, in tables and in
 * flame graphs.
 */
import { range, showsRuntime } from "./state";

/* runtime.main is the program's own. */
const RUNTIME = /^runtime[./](?!main$)/;

/* By the name of the start function. */
export function isRuntime(name: string): boolean {
    return RUNTIME.test(name);
}

/* The rows to show, without those of the runtime unless the switch or selected lanes ask for them; and the runtime's. */
export function foldRuntime<T>(
    rows: T[],
    nameOf: (row: T) => string,
): { rows: T[]; ofRuntime: T[] } {
    const ofRuntime = rows.filter((row) => isRuntime(nameOf(row)));
    if (showsRuntime.value || range.value?.of) return { rows, ofRuntime };
    return { rows: rows.filter((row) => !isRuntime(nameOf(row))), ofRuntime };
}

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
    return props.what && !range.value?.of ? (
        <p class="about">
            <RuntimeSwitch what={props.what} />
        </p>
    ) : null;
}
