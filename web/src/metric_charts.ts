/* The charts of an answer of metrics: goroutines by state, the heap, and the phases of the garbage collector. */
import type { Metrics } from "./api";
import type { Area, Chart } from "./charts";
import type { Palette, Rgb } from "./colors";

export interface MetricCharts {
    /* Running below, ready above: their sum, at most `most`, is the demand for CPUs. */
    counters: Chart;
    most: number;
    /* Columns in which only one goroutine runs and none is ready, although there are several Ps. */
    alone: Chart;
    /* With its goal; null: unknown. */
    heap: Chart | null;
    heapMost: number;
    marking: Chart;
    stopped: Chart;
    /* The same, to be drawn over lanes. */
    stoppedOver: Chart;
}

/* Height of the heap's chart in pixels. */
export const HEAP_HEIGHT = 22;

const order: [string, number][] = [
    ["running", 2],
    ["syscall", 4],
    ["runnable", 1],
];

function chartOf(of: Metrics, areas: Area[]): Chart {
    return { from: of.from, to: of.to, columns: of.columns, areas };
}

function columnsOf(of: Metrics, value: (i: number) => number): Float64Array {
    return Float64Array.from({ length: of.columns }, (_, i) => value(i));
}

function greatest(values: ArrayLike<number>): number {
    let most = 1;
    for (let i = 0; i < values.length; i++) most = Math.max(most, values[i]);
    return most;
}

function counters(of: Metrics, colors: Palette): { counters: Chart; most: number } {
    const value = (name: string, i: number) => of.counters[name]?.[i] ?? 0;
    const most = greatest(
        columnsOf(of, (i) => order.reduce((sum, [name]) => sum + value(name, i), 0)),
    );
    let low: ArrayLike<number> = new Float64Array(of.columns);
    const areas = order.map(([name, state]): Area => {
        const below = low;
        low = columnsOf(of, (i) => below[i] + value(name, i) / most);
        return { color: colors.states[state], low: below, high: low };
    });
    return { counters: chartOf(of, areas), most };
}

/*
 * Columns coloured by a share of their time: what fills a tenth of a pixel has a tenth of the
 * colour, so that many short pauses do not look like one long one.
 */
function shades(of: Metrics, color: Rgb, shares: ArrayLike<number>, alpha = 1): Chart {
    const area = {
        color,
        low: new Float64Array(of.columns),
        high: columnsOf(of, () => 1),
        alpha: columnsOf(of, (i) => (shares[i] ?? 0) * alpha),
    };
    return { ...chartOf(of, [area]), flat: true };
}

function isAlone(of: Metrics, i: number): boolean {
    const working = (of.counters.running?.[i] ?? 0) + (of.counters.syscall?.[i] ?? 0);
    const ready = of.counters.runnable?.[i] ?? 0;
    const procs = of.metrics.gomaxprocs?.max[i] ?? 0;
    return working > 0.9 && working < 1.1 && ready < 0.1 && procs > 1;
}

function valuesOf(of: Metrics | null, names: string[]): number[] | null {
    const found = names.map((name) => of?.metrics[name]).find((one) => one !== undefined);
    return found?.max.some((value) => value > 0) ? found.max : null;
}

export function heapOf(of: Metrics | null): number[] | null {
    return valuesOf(of, ["heap", "heap objects"]);
}

/* A line of one pixel. */
function lineArea(of: Metrics, values: number[], most: number, color: Rgb): Area {
    const half = 0.5 / HEAP_HEIGHT;
    const before = (i: number) => values[Math.max(i - 1, 0)];
    return {
        color,
        low: columnsOf(of, (i) => Math.max(0, Math.min(values[i], before(i)) / most - half)),
        high: columnsOf(of, (i) => Math.min(1, Math.max(values[i], before(i)) / most + half)),
    };
}

function heap(of: Metrics, colors: Palette): { heap: Chart | null; heapMost: number } {
    const values = heapOf(of);
    const goal = valuesOf(of, ["goal", "heap goal"]);
    if (!values) return { heap: null, heapMost: 0 };
    const heapMost = Math.max(greatest(values), greatest(goal ?? []));
    const areas: Area[] = [
        {
            color: colors.rgb("heap"),
            low: new Float64Array(of.columns),
            high: columnsOf(of, (i) => values[i] / heapMost),
        },
    ];
    if (goal) areas.push(lineArea(of, goal, heapMost, colors.rgb("faint")));
    return { heap: chartOf(of, areas), heapMost };
}

function make(of: Metrics, colors: Palette): MetricCharts {
    const stopped = of.shares?.stopped ?? [];
    const alone = columnsOf(of, (i) => Number(isAlone(of, i)));
    return {
        ...counters(of, colors),
        ...heap(of, colors),
        alone: shades(of, colors.rgb("sev-mid"), alone),
        marking: shades(of, colors.rgb("s-runtime"), of.shares?.marking ?? []),
        stopped: shades(of, colors.rgb("s-stw"), stopped),
        stoppedOver: shades(of, colors.rgb("s-stw"), stopped, 0.24),
    };
}

/* Indexed by whether the colours are dark. */
const made = [new WeakMap<Metrics, MetricCharts>(), new WeakMap<Metrics, MetricCharts>()];

export function metricCharts(of: Metrics, colors: Palette): MetricCharts {
    const kept = made[Number(colors.dark)];
    const charts = kept.get(of) ?? make(of, colors);
    kept.set(of, charts);
    return charts;
}
