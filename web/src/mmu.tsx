/* The panel of minimum mutator utilization, by length of the window (`trail mmu --json`). */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { palette } from "./colors";
import { duration, percent } from "./format";
import { Waiting } from "./panel";
import { useRun } from "./run";
import { Table } from "./table";

interface Mmu {
    windows_ns: number[];
    mmu: number[];
    mmu_corrected: number[];
}

function Plot(props: { of: Mmu }) {
    const box = useRef<HTMLDivElement>(null);
    const colors = palette.value;
    useEffect(() => {
        if (!box.current) return;
        const axis = {
            stroke: colors.faint,
            grid: { stroke: colors.line, width: 1 },
            ticks: { stroke: colors.line },
        };
        const options: uPlot.Options = {
            width: Math.max(320, Math.min(900, box.current.clientWidth)),
            height: 150,
            scales: { x: { time: false, distr: 3 }, y: { range: [0, 100] } },
            axes: [
                { ...axis, values: (_, values) => values.map((ns) => (ns ? duration(ns) : "")) },
                { ...axis, size: 58, values: (_, values) => values.map((value) => `${value} %`) },
            ],
            series: [
                { label: "window", value: (_, ns) => (ns ? duration(ns) : "") },
                {
                    label: "left, workers counted once",
                    stroke: colors.get("s-running"),
                    width: 2,
                    value: (_, y) => (y === null ? "" : percent(y, 100)),
                },
                {
                    label: "as Go computes it",
                    stroke: colors.get("s-cond"),
                    dash: [5, 4],
                    value: (_, y) => (y === null ? "" : percent(y, 100)),
                },
            ],
        };
        const scaled = (values: number[]) => values.map((value) => 100 * value);
        const plot = new uPlot(
            options,
            [props.of.windows_ns, scaled(props.of.mmu_corrected), scaled(props.of.mmu)],
            box.current,
        );
        return () => plot.destroy();
    }, [props.of, colors]);
    return (
        <div
            ref={box}
            role="img"
            aria-label="Minimum mutator utilization by the length of the window; the table below has the figures"
        />
    );
}

export function MmuPanel() {
    const answer = useRun<Mmu>("mmu", () => ({})).value;
    const of = answer.value;
    if (!of?.windows_ns) return <Waiting answer={answer} />;
    const rows = of.windows_ns.map((ns, i) => ({ ns, go: of.mmu[i], once: of.mmu_corrected[i] }));
    return (
        <div>
            <p>
                The share of its Ps that garbage collection left to the program in the worst window
                of each length (minimum mutator utilization).
            </p>
            <Plot of={of} />
            <Table
                name="mmu"
                columns={[
                    { title: "window", value: (row) => row.ns, unit: "ns" },
                    {
                        title: "left, workers counted once",
                        value: (row) => percent(row.once, 1),
                        unit: "number",
                    },
                    {
                        title: "as Go computes it",
                        value: (row) => percent(row.go, 1),
                        unit: "number",
                    },
                ]}
                rows={rows}
                empty="The trace is too short."
            />
        </div>
    );
}
