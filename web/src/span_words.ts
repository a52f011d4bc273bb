/* The name of a span: its state, and what it waits for. */
import { type Span, stateNames } from "./api";
import { stateNumber } from "./state";
import { inWords } from "./words";

export function stateWord(name: string): string {
    return inWords(stateNames[stateNumber(name)] ?? name);
}

/*
 * "waiting for mutex stats_mu", "syscall: waiting for file access.log"; where that is not recorded, the state and the
 * reason between these.
 */
export function spanWords(
    of: Pick<Span, "state" | "reason" | "phrase" | "object" | "sync">,
    before: string,
    after: string,
): string {
    const wait = of.phrase && (of.object ? `${of.phrase} ${of.object}` : of.phrase);
    if (wait && of.state === "waiting") return wait;
    const what = wait || of.sync || of.reason;
    return stateWord(of.state) + (what ? before + what + after : "");
}
