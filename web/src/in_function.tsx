/* The spans that begin in a function, requested at a frame and listed in the Stacks panel. */
import { useComputed } from "@preact/signals";
import type { Query } from "./api";
import { shortName } from "./format";
import { SpanTable } from "./spans";
import { end, inFunction, range, tab } from "./state";

export const IN_FUNCTION = "all spans that begin in this function";

export function listSpansIn(name: string): void {
    inFunction.value = name;
    tab.value = "flame";
}

/* For the selected range and its lanes, or else for the whole trace. */
function queryOf(): Query {
    const now = range.value;
    const lanes = now?.of?.kind === "goroutine" ? now.of.lanes.join(",") : undefined;
    return {
        kind: "goroutine",
        function: inFunction.value,
        from: Math.round(now?.from ?? 0),
        to: Math.round(now?.to ?? end.value),
        lanes,
    };
}

function List() {
    const query = useComputed(queryOf);
    return (
        <section class="in-function">
            <h3>
                <span title={inFunction.value}>
                    Spans that begin in {shortName(inFunction.value)}
                </span>{" "}
                <button
                    type="button"
                    onClick={() => {
                        inFunction.value = "";
                    }}
                >
                    Close the list
                </button>
            </h3>
            <SpanTable
                name="spans-in-function"
                query={query}
                order="in the range"
                empty="No span begins here in this function: stacks of what ran are those where it ended."
            />
        </section>
    );
}

export function InFunction() {
    return inFunction.value && <List />;
}
