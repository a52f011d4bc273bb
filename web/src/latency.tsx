/* The panel of latencies: histograms (`trail latency`), and the spans of each bar (`trail find`). */
import { useSignal } from "@preact/signals";
import { count, duration, shortName } from "./format";
import { type Bar, Histogram } from "./histogram";
import { About, Waiting } from "./panel";
import { jump, useRun } from "./run";
import { Table } from "./table";

interface Distribution {
    count: number;
    ns: number;
    times: {
        min_ns: number;
        mean_ns: number;
        p50_ns: number;
        p95_ns: number;
        p99_ns: number;
        max_ns: number;
        buckets: [number, number, number][];
    };
}

/* The most spans that are listed for a bar. */
const MOST = 10000;

interface Hit {
    goroutine: number;
    group: string;
    begin_ns: number;
    end_ns: number;
}

/* Patterns of `trail find` for the kinds of latency. */
const patterns: Record<string, string> = {
    scheduling: "ready",
    locks: "block[sync*|chan*|select*]",
    syscalls: "syscall",
};

/* What is said of a kind without any. */
const withoutAny: Record<string, string> = {
    scheduling: "Nothing was ready before it ran.",
    locks: "No wait for a lock or a channel ended.",
    syscalls: "No system call was recorded.",
};

export function LatencyPanel() {
    const answer = useRun<Record<string, Distribution>>("latency", () => ({})).value;
    const bar = useSignal<(Bar & { what: string }) | null>(null);
    const of = answer.value;
    if (!of) return <Waiting answer={answer} />;
    const kinds = Object.entries(of).filter(([, value]) => value?.times);
    return (
        <div>
            <About />
            <div class="columns">
                {kinds.map(([name, value]) => (
                    <section key={name}>
                        <h3>{name}</h3>
                        {value.count === 0 ? (
                            <p class="faint">{withoutAny[name]}</p>
                        ) : (
                            <>
                                <Histogram
                                    buckets={value.times.buckets}
                                    title={name}
                                    onBar={(chosen) => {
                                        bar.value = { what: name, ...chosen };
                                    }}
                                />
                                <p class="faint">
                                    {value.times.min_ns === value.times.max_ns
                                        ? `all ${duration(value.times.min_ns)}`
                                        : `${duration(value.times.min_ns)} … ${duration(value.times.max_ns)}, logarithmic`}
                                </p>
                                <p>
                                    {count(value.count)} times, {duration(value.ns)} in all; median{" "}
                                    {duration(value.times.p50_ns)}, p95{" "}
                                    {duration(value.times.p95_ns)}, p99{" "}
                                    {duration(value.times.p99_ns)}
                                </p>
                            </>
                        )}
                    </section>
                ))}
            </div>
            {bar.value && patterns[bar.value.what] && (
                <Behind key={`${bar.value.what} ${bar.value.from}`} {...bar.value} />
            )}
        </div>
    );
}

/* The spans of one bar. */
function Behind(props: Bar & { what: string }) {
    const pattern = `${patterns[props.what]} >=${props.from}ns <${props.to}ns`;
    const answer = useRun<{ origin_ns: number; hits: Hit[] }>("find", () => ({
        pattern,
        limit: MOST,
    })).value;
    const of = answer.value;
    if (!of?.hits) return <Waiting answer={answer} />;
    return (
        <section>
            <h3>
                {props.what}: {duration(props.from)} to {duration(props.to)}
                {props.many > of.hits.length &&
                    `, the first ${count(of.hits.length)} of ${count(props.many)}`}
            </h3>
            <Table
                name="spans"
                columns={[
                    { title: "{task}", value: (row) => row.goroutine, unit: "id" },
                    { title: "start function", value: (row) => shortName(row.group) },
                    { title: "at", value: (row) => row.begin_ns - of.origin_ns, unit: "ns" },
                    { title: "duration", value: (row) => row.end_ns - row.begin_ns, unit: "ns" },
                ]}
                rows={of.hits}
                sort="duration"
                empty="No such spans in this range."
                onRow={(row) =>
                    jump(row.goroutine, row.begin_ns - of.origin_ns, row.end_ns - of.origin_ns)
                }
            />
        </section>
    );
}
