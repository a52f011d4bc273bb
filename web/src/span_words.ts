/* What a span is called: its state, and what it waits for. */
import { type Span, stateNames } from "./api";
import { stateNumber } from "./state";
import { inWords } from "./words";

function stateWord(name: string): string {
    return inWords(stateNames[stateNumber(name)] ?? name);
}

/* "waiting for mutex stats_mu"; where that is not recorded, the state and the reason between these. */
export function spanWords(
    of: Pick<Span, "state" | "reason" | "phrase" | "object">,
    before: string,
    after: string,
): string {
    if (of.phrase) return of.object ? `${of.phrase} ${of.object}` : of.phrase;
    return stateWord(of.state) + (of.reason ? before + of.reason + after : "");
}
