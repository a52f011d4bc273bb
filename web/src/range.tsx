/* The panel of the selected range: totals by state, by start function, and by reason of waiting. */
import { useSignal, useSignalEffect } from "@preact/signals";
import { api, type Selection, states } from "./api";
import { count, duration, percent, shortName } from "./format";
import { showPath } from "./path";
import { timeText } from "./ruler";
import { filter, kind, range, showRange, tab } from "./state";
import { type Column, Table } from "./table";
import { waitName } from "./waits";

export function RangePanel() {
    const answer = useSignal<Selection | null>(null);
    const error = useSignal("");
    useSignalEffect(() => {
        const now = range.value;
        if (!now) return;
        const query = {
            kind: kind.value,
            from: Math.round(now.from),
            to: Math.round(now.to),
            match: filter.value.trim().split(/\s+/).join(" ") || undefined,
        };
        api.select(query)
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
                Drag over the ruler, or with Shift held over the lanes, to select a range and see
                what happened in it.
            </p>
        );
    if (error.value) return <p class="empty">{error.value}</p>;
    if (!answer.value) return <p class="empty">Computing …</p>;
    const of = answer.value;
    const all = states.slice(1).reduce((sum, name) => sum + (of.states[name] ?? 0), 0);
    const step = Math.max(1, of.duration / 1000);
    type Named = Selection["by_name"][number];
    const named: Column<Named>[] = [
        { title: `${kind.value}s of`, value: (row) => shortName(row.name) || "(unknown)" },
        { title: "how many", value: (row) => row.lanes, unit: "number" },
        ...states.slice(1).map((name) => ({
            title: name as string,
            value: (row: Named) => row.states[name] ?? 0,
            unit: "ns" as const,
        })),
    ];
    return (
        <div>
            <h2>
                {duration(of.duration)}, from {timeText(now.from, step)} to {timeText(now.to, step)}
            </h2>
            {filter.value && (
                <p class="about">
                    Of the {count(of.lanes)} lanes that match “{filter.value}”{" "}
                    <button
                        type="button"
                        onClick={() => {
                            filter.value = "";
                        }}
                    >
                        All lanes
                    </button>
                </p>
            )}
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
            <div class="stackbar" role="img" aria-label="Time by state">
                {states.slice(1).map((name, i) => (
                    <span
                        key={name}
                        class={`s${i + 1}`}
                        style={{ width: `${all ? (100 * (of.states[name] ?? 0)) / all : 0}%` }}
                        title={`${name}: ${duration(of.states[name] ?? 0)}`}
                    />
                ))}
            </div>
            <p>
                {states.slice(1).map((name, i) =>
                    of.states[name] ? (
                        <span class="fact" key={name}>
                            <i class={`swatch s${i + 1}`} /> {name} {duration(of.states[name])} (
                            {percent(of.states[name], all)})
                        </span>
                    ) : null,
                )}
            </p>
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
                            value: (row) => waitName(row) || "(no reason given)",
                        },
                        { title: "time", value: (row) => row.ns, unit: "ns" },
                        { title: "waits", value: (row) => row.spans, unit: "number" },
                    ]}
                    rows={of.by_reason}
                    sort="time"
                    empty=""
                />
            )}
        </div>
    );
}
