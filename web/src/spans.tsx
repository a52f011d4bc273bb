/* Lists of spans: the longest of a range, and those that the timeline draws in one pixel. */
import { type ReadonlySignal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { api, type Kind, type Query, type Selection, type SpanList, states } from "./api";
import type { WaitClass } from "./colors";
import { count, duration, percent } from "./format";
import { laneTitle } from "./lanes";
import { kindWord } from "./panel";
import { timeText } from "./ruler";
import { selectSpan } from "./select";
import { spanWords, stateWord } from "./span_words";
import { merged, selected, span } from "./state";
import { type Column, Table } from "./table";
import { waitClassOf, waitClassWord } from "./waits";

interface Share {
    name: string;
    color: string;
    ns: number;
}

/* The waits by class, longest first, then those that are not recorded, and those whose reasons are
 * not among the answer's. */
function waitsByClass(of: Pick<Selection, "states" | "by_reason">): Share[] {
    const sums = new Map<WaitClass, number>();
    for (const row of of.by_reason) {
        const name = waitClassOf(row.wait_kind ?? row.reason);
        sums.set(name, (sums.get(name) ?? 0) + row.ns);
    }
    const known = [...sums].sort(
        ([x, a], [y, b]) => Number(x === "unknown") - Number(y === "unknown") || b - a,
    );
    const rest = known.reduce((left, [, ns]) => left - ns, of.states.waiting ?? 0);
    return [
        ...known.map(([name, ns]) => ({ name: waitClassWord(name), color: `w-${name}`, ns })),
        { name: stateWord("waiting"), color: "s3", ns: Math.max(0, rest) },
    ];
}

/* A bar of the time in each state, of waits by their classes, and the figures. */
export function StateShares(props: { of: Pick<Selection, "states" | "by_reason"> }) {
    const named = states.slice(1).flatMap((name, i): Share[] => {
        if (name === "waiting") return waitsByClass(props.of);
        return [{ name: stateWord(name), color: `s${i + 1}`, ns: props.of.states[name] ?? 0 }];
    });
    const all = named.reduce((sum, { ns }) => sum + ns, 0);
    return (
        <>
            <div class="stackbar" role="img" aria-label="Time by state">
                {named.map(({ name, color, ns }) => (
                    <span
                        key={name}
                        class={color}
                        style={{ width: `${all ? (100 * ns) / all : 0}%` }}
                        title={`${name}: ${duration(ns)}`}
                    />
                ))}
            </div>
            <p>
                {named
                    .filter(({ ns }) => ns > 0)
                    .map(({ name, color, ns }) => (
                        <span class="fact" key={name}>
                            <i class={`swatch ${color}`} /> {name} {duration(ns)} (
                            {percent(ns, all)})
                        </span>
                    ))}
            </p>
        </>
    );
}

/* Requests again when the query changes; null until the first answer. */
export function useAnswer<T>(query: ReadonlySignal<Query>, ask: (query: Query) => Promise<T>) {
    const answer = useSignal<T | null>(null);
    useSignalEffect(() => {
        let isOld = false;
        ask(query.value)
            .then((value) => {
                if (!isOld) answer.value = value;
            })
            .catch(() => {
                /* The last answer remains; the next change requests again. */
            });
        return () => {
            isOld = true;
        };
    });
    return answer.value;
}

type Row = SpanList["spans"][number];

/* Each lane's name is shown unless there is only one. */
function whoseColumns(kind: Kind, rows: Row[]): Column<Row>[] {
    const columns: Column<Row>[] = [];
    if (rows.some((row) => row.lane !== rows[0].lane))
        columns.push({ title: kindWord(kind, false), value: (row) => laneTitle(kind, row) });
    if (kind !== "goroutine")
        columns.push({
            title: "{task}",
            value: (row) => (row.goroutine ? laneTitle("goroutine", row.goroutine) : ""),
        });
    return columns;
}

export function SpanTable(props: {
    name: string;
    query: ReadonlySignal<Query>;
    order: "begin" | "in the range";
    /* The text if there is no span. */
    empty?: string;
}) {
    const of = useAnswer(props.query, api.spans);
    const kind = props.query.value.kind as Kind;
    if (!of) return <p class="empty">Computing …</p>;
    const columns: Column<Row>[] = [
        { title: "span", value: (row) => spanWords(row, " (", ")") },
        ...whoseColumns(kind, of.spans),
        {
            title: "begin",
            value: (row) => row.begin,
            unit: "ns",
            text: (row) => timeText(row.begin, 1),
        },
        { title: "duration", value: (row) => row.end - row.begin, unit: "ns" },
        { title: "in the range", value: (row) => row.inside, unit: "ns" },
    ];
    return (
        <>
            {of.all > of.spans.length && (
                <p class="about">
                    The {count(of.spans.length)} longest of {count(of.all)} spans
                </p>
            )}
            <Table
                name={props.name}
                columns={columns}
                rows={of.spans}
                sort={props.order}
                up={props.order === "begin"}
                empty={props.empty ?? "No span is there."}
                onRow={(row) => void selectSpan(kind, row.lane, row.span, false)}
            />
        </>
    );
}

/* What is in the clicked pixel, as long as one of its spans is selected. */
export function Merged() {
    const now = merged.value;
    const of = span.value;
    const isShown =
        now &&
        of &&
        selected.value?.kind === now.kind &&
        of.lane === now.lane &&
        of.begin < now.to &&
        of.end > now.from;
    return isShown && <MergedSpans />;
}

function MergedSpans() {
    const query = useComputed<Query>(() => {
        const now = merged.value ?? { kind: "goroutine", lane: 0, from: 0, to: 1 };
        return { kind: now.kind, lanes: now.lane, from: now.from, to: now.to };
    });
    const sums = useAnswer<Selection>(query, api.select);
    const { from, to } = query.value;
    return (
        <section class="merged">
            <h3>
                In this pixel: {sums && `${count(sums.spans_seen)} spans in `}
                {duration(Number(to) - Number(from))}
            </h3>
            {sums && <StateShares of={sums} />}
            <SpanTable name="spans-of-pixel" query={query} order="begin" />
        </section>
    );
}
