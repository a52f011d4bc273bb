/* The panel of locks and channels: number and duration of waits for each (`trail locks`). */
import { shortName } from "./format";
import { About, Waiting } from "./panel";
import { jump, useRun } from "./run";
import { Table } from "./table";

interface LockRow {
    kind: string;
    name: string;
    waited: { function: string }[];
    waits: number;
    wait_ns: number;
    wait: { p50_ns: number; p99_ns: number; max_ns: number };
    longest: { ns: number; begin_ns: number; goroutine: number };
    holds: number;
    hold_ns: number;
}

export function LocksPanel() {
    const answer = useRun<{ origin_ns: number; locks: LockRow[] }>("locks", () => ({})).value;
    const of = answer.value;
    if (!of?.locks) return <Waiting answer={answer} />;
    const where = (row: LockRow) =>
        row.waited.find((frame) => !frame.function.startsWith("runtime.")) ?? row.waited[0];
    return (
        <div>
            <About />
            <Table
                name="locks"
                columns={[
                    {
                        title: "lock",
                        value: (row) =>
                            row.name || shortName(where(row)?.function ?? "") || "(unknown)",
                    },
                    { title: "kind", value: (row) => row.kind },
                    { title: "waits", value: (row) => row.waits, unit: "number" },
                    { title: "waited", value: (row) => row.wait_ns, unit: "ns" },
                    { title: "median", value: (row) => row.wait.p50_ns, unit: "ns" },
                    { title: "p99", value: (row) => row.wait.p99_ns, unit: "ns" },
                    { title: "longest", value: (row) => row.wait.max_ns, unit: "ns" },
                    { title: "held", value: (row) => row.hold_ns, unit: "ns" },
                ]}
                rows={of.locks}
                sort="waited"
                empty="No waits for locks or channels."
                onRow={(row) => {
                    const from = row.longest.begin_ns - of.origin_ns;
                    jump(row.longest.goroutine, from, from + row.longest.ns);
                }}
            />
        </div>
    );
}
