/*
 * The SQL panel (`trail sql`): a query, its rows, and which of them the timeline shows. The engine
 * is the server's DuckDB; a trace without a server has none.
 */
import { batch, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { api } from "./api";
import { Choice } from "./choice";
import { count } from "./format";
import { forgetQuery, named, saved, saveQuery, wantNamed } from "./queries";
import { jump, useRun } from "./run";
import {
    clearTrack,
    countable,
    counter,
    counterOf,
    type Placed,
    placed,
    placesOf,
    type Row,
} from "./sql_track";
import { end, query, status } from "./state";
import { type Column, Table } from "./table";
import { source } from "./wasm/source";

/* If more rows have a time, only the first are shown in the timeline. */
const MOST_PLACED = 50000;

function WithoutSql() {
    if (source.value !== "server")
        return (
            <p class="empty">
                No SQL here: this page reads the trace by itself, and DuckDB, which answers queries,
                is part of trail on a machine (for browsers it is a file of 34 MB that cannot read
                traces). Save the trace and open it with <code>trail view</code>, or ask{" "}
                <code>trail sql FILE</code>.
            </p>
        );
    return (
        <p class="empty">
            SQL needs DuckDB's library and a trace in a file: <code>trail sql --help</code> says
            where it is looked for.
        </p>
    );
}

/* MARK: Queries */

function Queries() {
    const name = useSignal("");
    const chosen = saved.value.find((one) => one.sql === query.value);
    const options = [
        ["", "Choose a query"] as const,
        ...saved.value.map((one) => [`saved ${one.name}`, one.name] as const),
        ...named.value.map((one) => [`named ${one.name}`, `${one.name}: ${one.meaning}`] as const),
    ];
    const all = new Map<string, string>([
        ...saved.value.map((one) => [`saved ${one.name}`, one.sql] as const),
        ...named.value.map((one) => [`named ${one.name}`, one.sql] as const),
    ]);
    return (
        <div class="tools">
            <Choice
                label="Queries"
                value={[...all].find(([, sql]) => sql === query.value)?.[0] ?? ""}
                options={options}
                onChoose={(key) => {
                    query.value = all.get(key) ?? query.value;
                }}
            />
            <form
                onSubmit={(event) => {
                    event.preventDefault();
                    if (name.value.trim()) saveQuery(name.value.trim(), query.value);
                    name.value = "";
                }}
            >
                <input
                    type="text"
                    placeholder="Save it as"
                    aria-label="Name to save the query as"
                    value={name.value}
                    onInput={(event) => {
                        name.value = event.currentTarget.value;
                    }}
                />{" "}
                <button type="submit" disabled={!name.value.trim()}>
                    Save
                </button>
            </form>
            {chosen && (
                <button type="button" onClick={() => forgetQuery(chosen.name)}>
                    Forget “{chosen.name}”
                </button>
            )}
        </div>
    );
}

/* MARK: Rows */

/* If no row has a goroutine and there is only one numeric column, it is shown without being
 * requested. */
function firstCounter(places: Placed[], names: string[]): string {
    const ofTasks = places.some(({ goroutine }) => goroutine !== undefined);
    return !ofTasks && names.length === 1 ? names[0] : "";
}

function showRows(places: Placed[], name: string): void {
    batch(() => {
        placed.value = places.length > 0 ? places.slice(0, MOST_PLACED) : null;
        counter.value = name ? counterOf(places, name) : null;
    });
}

/* What the timeline shows of the rows. */
function InTimeline(props: { rows: Row[]; places: Placed[] }) {
    const { rows, places } = props;
    if (places.length === 0)
        return (
            <p class="faint">
                None of the rows is in the timeline: that takes a column begin_ns, time_ns, start_ns
                or since_start, and for a lane one named goroutine.
            </p>
        );
    const names = countable(rows);
    const shown = placed.value !== null;
    return (
        <p class="about">
            {count(Math.min(places.length, MOST_PLACED))} of {count(rows.length)} rows have a time{" "}
            <button
                type="button"
                aria-pressed={shown}
                onClick={() => {
                    placed.value = shown ? null : places.slice(0, MOST_PLACED);
                }}
            >
                Show them in the timeline
            </button>{" "}
            {names.length > 0 && (
                <Choice
                    label="as a counter"
                    value={counter.value?.name ?? ""}
                    options={[["", "none"], ...names.map((name) => [name, name] as const)]}
                    onChoose={(name) => {
                        counter.value = name ? counterOf(places, name) : null;
                    }}
                />
            )}
        </p>
    );
}

function columnsOf(rows: Row[]): Column<Row>[] {
    return Object.keys(rows[0] ?? {}).map((name) => {
        const isNumber = rows.some((row) => typeof row[name] === "number");
        return {
            title: name,
            value: (row: Row) =>
                typeof row[name] === "number" ? (row[name] as number) : String(row[name] ?? ""),
            unit: isNumber ? ("number" as const) : undefined,
        };
    });
}

export function SqlPanel() {
    const rows = useSignal<Row[] | null>(null);
    const error = useSignal("");
    const asking = useSignal(false);
    /* For the time of the first event, on the trace's clock. */
    const summary = useRun<{ origin_ns: number }>("summary", () => ({}), "whole").value;
    const origin = summary.value?.origin_ns;
    const canSql = status.value?.can_sql ?? false;
    useEffect(() => {
        if (canSql) wantNamed();
    }, [canSql]);
    const places = useMemo(
        () => (rows.value && origin !== undefined ? placesOf(rows.value, origin) : []),
        [rows.value, origin],
    );
    if (!canSql) return <WithoutSql />;
    const ask = () => {
        if (origin === undefined) return;
        asking.value = true;
        error.value = "";
        clearTrack();
        api.sql<Row[]>(query.value)
            .then((found) => {
                const all = placesOf(found, origin);
                rows.value = found;
                showRows(all, firstCounter(all, countable(found)));
            })
            .catch((bad: Error) => {
                error.value = bad.message;
            })
            .finally(() => {
                asking.value = false;
            });
    };
    return (
        <div class="sql">
            <Queries />
            <textarea
                aria-label="SQL"
                rows={4}
                spellcheck={false}
                value={query.value}
                onInput={(event) => {
                    query.value = event.currentTarget.value;
                }}
                onKeyDown={(event) => {
                    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask();
                }}
            />
            <div class="buttons">
                <button type="button" onClick={ask} disabled={asking.value || origin === undefined}>
                    {asking.value ? "Asking …" : "Ask (Ctrl Enter)"}
                </button>
                <span class="faint">
                    Tables: events, states, goroutines, stacks, tasks, regions … Rows with a time
                    are shown in the timeline.
                </span>
            </div>
            {error.value && <pre class="error">{error.value}</pre>}
            {rows.value && <InTimeline rows={rows.value} places={places} />}
            {rows.value && (
                <Table
                    name="sql"
                    columns={columnsOf(rows.value)}
                    rows={rows.value}
                    empty="No row."
                    onRow={(row) => {
                        const one = places.find((of) => of.row === row);
                        if (one) jump(one.goroutine ?? null, one.from, Math.min(one.to, end.value));
                    }}
                />
            )}
        </div>
    );
}
