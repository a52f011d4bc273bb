/* The panel of latencies: histograms (`trail latency`), and the spans of each bar (`trail find`). */
import { useSignal } from "@preact/signals";
import { count, duration, shortName } from "./format";
import { type Bar, Histogram } from "./histogram";
import { Waiting } from "./panel";
import { jump, useRun } from "./run";
import { status } from "./state";
import { Table } from "./table";
import { inWords } from "./words";

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

const titles: Record<string, string> = {
    scheduling: "Scheduling (ready until running)",
    locks: "{Lock_waits}",
    syscalls: "Syscalls",
};

/* What is said of a kind without any. */
const withoutAny: Record<string, string> = {
    scheduling: "Nothing was ready before it ran.",
    locks: "No such wait ended.",
    syscalls: "No system call was recorded.",
};

/* How many of the times stand for lengths that are not recorded: before Go 1.22 a system call that does not block has 1 ns. */
function unrecorded(name: string, of: Distribution): number {
    const [from, , many] = of.times.buckets[0] ?? [0, 0, 0];
    return name === "syscalls" && (status.value?.version ?? 0) < 22 && from === 1 ? many : 0;
}

/* What is known of the times: all of them, or of those that have a length. */
function Lengths(props: { of: Distribution; without: number }) {
    const { times, ns, count: all } = props.of;
    const { without } = props;
    if (without > 0)
        return (
            <p>
                {count(all)} times; {count(all - without)} of them blocked
                {all > without && `, ${duration(ns - without)} in all`}. The length of the others is
                not recorded.
            </p>
        );
    if (all === 1) return <p>Once, for {duration(ns)}</p>;
    return (
        <p>
            {count(all)} times, {duration(ns)} in all; median {duration(times.p50_ns)}, p95{" "}
            {duration(times.p95_ns)}, p99 {duration(times.p99_ns)}
        </p>
    );
}

export function LatencyPanel() {
    const answer = useRun<Record<string, Distribution>>("latency", () => ({})).value;
    const bar = useSignal<(Bar & { what: string }) | null>(null);
    const of = answer.value;
    if (!of) return <Waiting answer={answer} />;
    const kinds = Object.entries(of).filter(([, value]) => value?.times);
    return (
        <div>
            <div class="columns">
                {kinds.map(([name, value]) => (
                    <section key={name}>
                        <h3>{inWords(titles[name])}</h3>
                        {value.count === 0 ? (
                            <p class="faint">{withoutAny[name]}</p>
                        ) : (
                            <>
                                <Histogram
                                    buckets={value.times.buckets.slice(
                                        unrecorded(name, value) > 0 ? 1 : 0,
                                    )}
                                    title={inWords(titles[name])}
                                    onBar={(chosen) => {
                                        bar.value = { what: name, ...chosen };
                                    }}
                                />
                                <Lengths of={value} without={unrecorded(name, value)} />
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
                {inWords(titles[props.what])}: {duration(props.from)} to {duration(props.to)}
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
