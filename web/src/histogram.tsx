/* A histogram with a logarithmic axis, whose ends are written below, and bars that can be clicked. */
import { count, duration } from "./format";

/* A bar covers whole buckets: from the start of its first to the end of its last. */
export interface Bar {
    from: number;
    to: number;
    many: number;
}

/* Two bars for each power of two. */
const placeOf = (ns: number) => Math.log2(Math.max(ns, 1)) * 2;

/* Merges buckets into bars of about equal width on a logarithmic axis. */
export function Histogram(props: {
    /* From, to, count. */
    buckets: readonly (readonly [number, number, number])[];
    title: string;
    median?: number;
    onBar: (bar: Bar) => void;
}) {
    const bars = new Map<number, Bar>();
    for (const [from, to, many] of props.buckets) {
        const at = Math.floor(placeOf(from));
        const bar = bars.get(at);
        bars.set(at, {
            from: Math.min(bar?.from ?? from, from),
            to: Math.max(bar?.to ?? to, to),
            many: (bar?.many ?? 0) + many,
        });
    }
    const keys = [...bars.keys()];
    if (keys.length === 0) return null;
    const first = Math.min(...keys);
    const last = Math.max(...keys);
    const most = Math.max(...[...bars.values()].map(({ many }) => many));
    const all = last - first + 1;
    const { median } = props;
    return (
        <div class="distribution">
            <div class="histogram">
                {Array.from({ length: all }, (_, i) => {
                    const at = first + i;
                    const empty = { from: 2 ** (at / 2), to: 2 ** ((at + 1) / 2), many: 0 };
                    const { from, to, many } = bars.get(at) ?? empty;
                    return (
                        <button
                            type="button"
                            key={at}
                            style={{ height: `${many ? Math.max(3, (100 * many) / most) : 0}%` }}
                            title={`${duration(from)} to ${duration(to)}: ${count(many)}`}
                            aria-label={`${props.title}: ${duration(from)} to ${duration(to)}: ${count(many)}`}
                            disabled={many === 0}
                            onClick={() => props.onBar({ from, to, many })}
                        />
                    );
                })}
                {median !== undefined && (
                    <i
                        class="median"
                        style={{ left: `${(100 * (placeOf(median) - first)) / all}%` }}
                    />
                )}
            </div>
            <p class="ends">
                <span>{duration(bars.get(first)?.from ?? 0)}</span>
                <span>logarithmic</span>
                <span>{duration(bars.get(last)?.to ?? 0)}</span>
            </p>
        </div>
    );
}
