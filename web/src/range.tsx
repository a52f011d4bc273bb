/* The panel of the selected range: totals by state, by start function, and by reason of waiting; its longest spans. */
import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { api, type Query, type Selection, states } from "./api";
import { count, duration, NO_NAME, shortName } from "./format";
import { counted, kindWord } from "./panel";
import { showPath } from "./path";
import { timeText } from "./ruler";
import { stateWord } from "./span_words";
import { SpanTable, StateShares } from "./spans";
import { filter, filterWords, kind, MOST_IN_AREA, range, showRange, tab } from "./state";
import { type Column, Table } from "./table";
import { waitName, waitTitle } from "./waits";

/* The query about the range: for the lanes of the area, or else those that pass the filter. */
function queryOf(): Query {
    const now = range.value ?? { from: 0, to: 1 };
    const times = { from: Math.round(now.from), to: Math.round(now.to) };
    if (now.of) return { ...times, kind: now.of.kind, lanes: now.of.lanes.join(",") };
    return { ...times, kind: kind.value, match: filterWords() };
}

/* Which lanes the sums cover, if not all. */
function OfLanes(props: { lanes: number }) {
    const now = range.value;
    const all = (text: string, run: () => void) => (
        <button type="button" onClick={run}>
            {text}
        </button>
    );
    if (now?.of)
        return (
            <p class="about">
                Of {counted(now.of)}
                {now.of.lanes.length >= MOST_IN_AREA && ", the most that an area can have"}{" "}
                {all("All lanes", () => {
                    range.value = { from: now.from, to: now.to };
                })}
            </p>
        );
    if (!filter.value) return null;
    return (
        <p class="about">
            Of the {count(props.lanes)} lanes that match “{filter.value}”{" "}
            {all("All lanes", () => {
                filter.value = "";
            })}
        </p>
    );
}

/* Its longest spans, listed on request because that examines all spans of the range. */
function LongestSpans() {
    const isOpen = useSignal(false);
    const query = useComputed(queryOf);
    return (
        <section>
            <button
                type="button"
                aria-expanded={isOpen.value}
                onClick={() => {
                    isOpen.value = !isOpen.value;
                }}
            >
                {isOpen.value ? "Hide its spans" : "List its longest spans"}
            </button>
            {isOpen.value && <SpanTable name="spans-of-range" query={query} order="in the range" />}
        </section>
    );
}

export function RangePanel() {
    const answer = useSignal<Selection | null>(null);
    const error = useSignal("");
    useSignalEffect(() => {
        if (!range.value) return;
        api.select(queryOf())
            .then((value) => {
                answer.value = value;
                error.value = "";
            })
            .catch((bad: Error) => {
                error.value = bad.message;
            });
    });
    const now = range.value;
    if (!now)
        return (
            <p class="empty">
                Drag over the ruler to select a range and see what happened in it; with Shift held
                over lanes, to select a range of these lanes.
            </p>
        );
    if (error.value) return <p class="empty">{error.value}</p>;
    if (!answer.value) return <p class="empty">Computing …</p>;
    const of = answer.value;
    const step = Math.max(1, of.duration / 1000);
    const lanesWord = kindWord(now.of?.kind ?? kind.value, true);
    type Named = Selection["by_name"][number];
    const named: Column<Named>[] = [
        { title: "start function", value: (row) => shortName(row.name) || NO_NAME },
        { title: lanesWord, value: (row) => row.lanes, unit: "number" },
        ...states
            .slice(1)
            .filter((name) => of.states[name])
            .map((name) => ({
                title: stateWord(name),
                value: (row: Named) => row.states[name] ?? 0,
                unit: "ns" as const,
            })),
    ];
    return (
        <div>
            <h2>
                {duration(of.duration)}, from {timeText(now.from, step)} to {timeText(now.to, step)}
            </h2>
            <OfLanes lanes={of.lanes} />
            <div class="buttons">
                <button type="button" onClick={() => showRange(now)}>
                    Zoom to it
                </button>
                <button
                    type="button"
                    onClick={() => {
                        tab.value = "flame";
                    }}
                >
                    Stacks of it
                </button>
                <button type="button" onClick={() => showPath("window=1")}>
                    Critical path of it
                </button>
                <button
                    type="button"
                    onClick={() => {
                        range.value = null;
                    }}
                >
                    Clear (Esc)
                </button>
            </div>
            <StateShares of={of} />
            {!of.complete && (
                <p class="faint">
                    Reasons are of the first {count(of.spans_seen)} spans only: too many.
                </p>
            )}
            <Table
                name="states-by-name"
                columns={named}
                rows={of.by_name}
                sort="running"
                empty="Nothing is there."
            />
            {of.by_reason.length > 0 && (
                <Table
                    name="waits-by-reason"
                    columns={[
                        {
                            title: "waited for",
                            value: (row) => waitName(row) || waitTitle(""),
                        },
                        { title: "time", value: (row) => row.ns, unit: "ns" },
                        { title: "waits", value: (row) => row.spans, unit: "number" },
                    ]}
                    rows={of.by_reason}
                    sort="time"
                    empty=""
                />
            )}
            <LongestSpans />
        </div>
    );
}
