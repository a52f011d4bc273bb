/* The SQL panel (`trail sql`). Rows with a goroutine and a time link to the timeline. */
import { useSignal } from "@preact/signals";
import { api } from "./api";
import { jump } from "./run";
import { end, status } from "./state";
import { Table } from "./table";

export function SqlPanel() {
    const query = useSignal(
        "select name, count(*) as goroutines, sum(exec_ns) as exec_ns\nfrom goroutines group by name order by exec_ns desc",
    );
    const rows = useSignal<Record<string, unknown>[] | null>(null);
    const error = useSignal("");
    const asking = useSignal(false);
    const ask = () => {
        asking.value = true;
        error.value = "";
        api.sql<Record<string, unknown>[]>(query.value)
            .then((value) => {
                rows.value = value;
            })
            .catch((bad: Error) => {
                error.value = bad.message;
            })
            .finally(() => {
                asking.value = false;
            });
    };
    if (!status.value?.can_sql)
        return (
            <p class="empty">
                SQL needs DuckDB's library and a trace in a file: <code>trail sql --help</code> says
                where it is looked for.
            </p>
        );
    const names = Object.keys(rows.value?.[0] ?? {});
    return (
        <div class="sql">
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
                <button type="button" onClick={ask} disabled={asking.value}>
                    {asking.value ? "Asking …" : "Ask (Ctrl Enter)"}
                </button>
                <span class="faint">
                    Tables: events, states, goroutines, stacks, tasks, regions … Rows with a
                    goroutine and a time lead to it.
                </span>
            </div>
            {error.value && <pre class="error">{error.value}</pre>}
            {rows.value && (
                <Table
                    name="sql"
                    columns={names.map((name) => ({
                        title: name,
                        value: (row: Record<string, unknown>) =>
                            typeof row[name] === "number"
                                ? (row[name] as number)
                                : String(row[name] ?? ""),
                        unit:
                            typeof rows.value?.[0][name] === "number"
                                ? ("number" as const)
                                : undefined,
                    }))}
                    rows={rows.value}
                    empty="No row."
                    onRow={(row) => {
                        const id = Number(row.goroutine ?? row.g);
                        const from = Number(row.begin_ns ?? row.start_ns ?? row.time_ns ?? 0);
                        const to = Number(row.end_ns ?? from + Number(row.duration_ns ?? 1000));
                        if (Number.isSafeInteger(id))
                            jump(
                                id,
                                Math.max(0, from),
                                Math.min(Math.max(to, from + 1), end.value),
                            );
                    }}
                />
            )}
        </div>
    );
}
