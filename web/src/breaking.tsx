/*
 * A text whose long names break where their parts end: after "/", ".", "::", "_", and within a part
 * that is itself long, before a capital. Shorter words are whole.
 */
import { Fragment } from "preact";

const LONG = 24;

function partsOf(word: string): string[] {
    if (word.length <= LONG) return [word];
    return word
        .split(/(?<=[\p{L}\p{N})\]>](?:::|[/._]))(?=[\p{L}(~<])/u)
        .flatMap((part) => (part.length <= LONG ? [part] : part.split(/(?<=\p{Ll})(?=\p{Lu})/u)));
}

export function Breaking(props: { of: string }) {
    return props.of
        .split(/(?<= )/)
        .flatMap(partsOf)
        .map((part, i) => (
            <Fragment key={i}>
                {i > 0 && <wbr />}
                {part}
            </Fragment>
        ));
}
