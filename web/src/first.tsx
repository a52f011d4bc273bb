/* Above a table of the first of very many rows: how many there are, by what, and a button for more. */
import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { count } from "./format";

export function First(props: {
    shown: number;
    all: number;
    limit: Signal<number>;
    children: ComponentChildren;
}) {
    const { shown, all, limit } = props;
    return (
        <p class="about">
            The first {count(shown)} of {count(all)} {props.children}{" "}
            {shown < all && (
                <button
                    type="button"
                    onClick={() => {
                        limit.value *= 2;
                    }}
                >
                    Twice as many
                </button>
            )}
        </p>
    );
}
