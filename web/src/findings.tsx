/* The findings of `trail summary`, as cards, chips or a list; each leads to its place in the timeline. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Breaking } from "./breaking";
import { measure } from "./colors";
import { isTold, showFinding, shownFinding } from "./culprit";
import { sentence, withSign } from "./format";
import { Severity } from "./icons";
import { conclusionOf, explanationOf, type Finding, keyOf, remedyOf } from "./summary";

/* By the share of the trace, or of the slow task, that a finding concerns. */
function severity({ weight = 0 }: Finding): "high" | "mid" | "low" {
    return weight >= 0.05 ? "high" : weight >= 0.01 ? "mid" : "low";
}

/* What stands below the heading: the reason, or, if the selection has that, what to do. */
function below(of: Finding, isToldOf: boolean, isAlone: boolean): string {
    if (!isToldOf) return of.details || of.remedy;
    return (isAlone ? conclusionOf(of) : remedyOf(of)) || of.details;
}

/* The lines of a card's words: the heading's, and those that it leaves for the reason. */
const LINES = 4;

function useLinesLeft() {
    const heading = useRef<HTMLHeadingElement>(null);
    const left = useSignal(1);
    useEffect(() => {
        const observer = new ResizeObserver(([{ contentRect }]) => {
            left.value = Math.max(1, LINES - Math.round(contentRect.height / measure("sp-4")));
        });
        if (heading.current) observer.observe(heading.current);
        return () => observer.disconnect();
    }, [left]);
    return { heading, left };
}

export function Card(props: { of: Finding; origin: number; isAlone: boolean }) {
    const { of, origin } = props;
    const what = withSign(of.heading);
    const isShown = shownFinding.value === keyOf(of);
    const isToldOf = isShown && isTold.value;
    const { heading, left } = useLinesLeft();
    return (
        <li class={`card${isShown ? " selected" : ""}`} title={withSign(of.text)}>
            <Severity of={severity(of)} />
            <div class="words">
                <h2 ref={heading}>
                    <bdi>
                        <Breaking of={sentence(of.heading)} />
                    </bdi>
                </h2>
                <p style={{ WebkitLineClamp: left.value }}>
                    <bdi>
                        <Breaking of={sentence(below(of, isToldOf, props.isAlone))} />
                    </bdi>
                </p>
            </div>
            <div class="foot">
                {of.gain_figure && (
                    <span class="figure">
                        <span>{of.gain_title}</span> <b>{withSign(of.gain_figure)}</b>
                    </span>
                )}
                <button
                    type="button"
                    aria-pressed={isShown}
                    aria-label={`${isShown ? "Shown" : "Show"}: ${what}`}
                    onClick={() => showFinding(of, origin)}
                >
                    {isShown ? "Shown" : "Show"}
                </button>
            </div>
        </li>
    );
}

export function Chip(props: { of: Finding; origin: number; isAlone: boolean }) {
    const { of, origin } = props;
    const isShown = shownFinding.value === keyOf(of);
    return (
        <li>
            <button
                type="button"
                class={`chip${isShown ? " selected" : ""}`}
                title={withSign(of.text)}
                onClick={() => showFinding(of, origin)}
            >
                <Severity of={severity(of)} />
                <span>
                    <bdi>{sentence(of.heading)}</bdi>
                </span>
            </button>
        </li>
    );
}

export function Findings(props: { findings: Finding[]; origin: number }) {
    return (
        <ol class="findings">
            {props.findings.map((of) => (
                <li key={keyOf(of)}>
                    <button
                        type="button"
                        class="textlink"
                        onClick={() => showFinding(of, props.origin)}
                    >
                        <bdi>{sentence(of.heading)}</bdi>
                    </button>
                    <p>
                        <bdi>
                            <Breaking of={sentence(explanationOf(of))} />
                        </bdi>
                    </p>
                </li>
            ))}
        </ol>
    );
}
