/* A list of findings (`trail summary`); each leads to its place in the timeline. */
import { withSign } from "./format";
import { jump } from "./run";

export interface Finding {
    kind: string;
    text: string;
    begin_ns: number;
    end_ns: number;
    goroutine: number | null;
}

export function Findings(props: { findings: Finding[]; origin: number }) {
    return (
        <ol class="findings">
            {props.findings.map((finding) => (
                <li key={`${finding.kind} ${finding.begin_ns} ${finding.text}`}>
                    <button
                        type="button"
                        class="textlink"
                        onClick={() =>
                            jump(
                                finding.goroutine,
                                finding.begin_ns - props.origin,
                                finding.end_ns - props.origin,
                            )
                        }
                    >
                        {withSign(finding.text)}
                    </button>
                </li>
            ))}
        </ol>
    );
}
