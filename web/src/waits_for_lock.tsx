/* The waits for a lock that the lane of the selected span held in the middle of them. */
import { useComputed } from "@preact/signals";
import { api, type Query, type SpanList } from "./api";
import { count, duration } from "./format";
import { laneTitle } from "./lanes";
import { selectSpan } from "./select";
import { useAnswer } from "./spans";
import { span } from "./state";

/* The number of waits that are listed. */
const MOST = 12;

type Row = SpanList["spans"][number];

/* Each wait on one scale of time. */
function Waits(props: { of: Row[] }) {
    const from = Math.min(...props.of.map((row) => row.begin));
    const to = Math.max(...props.of.map((row) => row.end));
    const percentOf = (ns: number) => `${(100 * ns) / Math.max(1, to - from)}%`;
    return (
        <ul class="lock-waits">
            {props.of.map((row) => (
                <li key={`${row.lane} ${row.span}`}>
                    <button
                        type="button"
                        class="textlink"
                        onClick={() => void selectSpan("goroutine", row.lane, row.span)}
                    >
                        {laneTitle("goroutine", row)}
                    </button>
                    <span class="lasts">
                        <i
                            style={{
                                marginLeft: percentOf(row.begin - from),
                                width: percentOf(row.end - row.begin),
                            }}
                        />
                    </span>
                    {duration(row.end - row.begin)}
                </li>
            ))}
        </ul>
    );
}

export function WaitsForLock() {
    const query = useComputed<Query>(() => {
        const of = span.value;
        return {
            kind: "goroutine",
            holder: of?.lane ?? 0,
            from: of?.begin ?? 0,
            to: of?.end ?? 1,
        };
    });
    const answer = useAnswer(query, api.spans);
    const of = span.value;
    const waits = (answer?.spans ?? [])
        .filter(({ held_by: by }) => by?.lane === of?.lane && by?.span === of?.span)
        .sort((a, b) => b.end - b.begin - (a.end - a.begin));
    if (waits.length === 0) return null;
    const objects = new Set(
        waits.map(({ wait_kind = "", object = "" }) => `${wait_kind} ${object}`),
    );
    const lock = objects.size === 1 && waits[0].object ? [...objects][0] : "its lock";
    const rest = waits.length - MOST;
    return (
        <section>
            <h3>
                Waits for {lock}
                {waits[0].held_by?.inferred && " (inferred)"}
            </h3>
            <Waits of={waits.slice(0, MOST)} />
            {rest > 0 && <p class="faint">and {count(rest)} shorter ones</p>}
        </section>
    );
}
