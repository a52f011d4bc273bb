/* Writes the address once the view has come to rest. */
import { effect } from "@preact/signals";

const MOST_ROUNDS = 20;

/*
 * Calls `write` when the fragment has not changed for a moment, because browsers limit the rate;
 * until then the root element has data-moving. An address that the user has just changed is not
 * overwritten before its event arrives, for up to MOST_ROUNDS moments.
 */
export function whenSettled(fragment: () => string, write: (text: string) => void): void {
    let timer = 0;
    let seen = location.hash;
    addEventListener("hashchange", () => {
        seen = location.hash;
    });
    effect(() => {
        const text = fragment();
        let rounds = 0;
        const settle = () => {
            if (location.hash !== seen && rounds++ < MOST_ROUNDS) {
                timer = setTimeout(settle, 150);
                return;
            }
            write(text);
            seen = location.hash;
            delete document.documentElement.dataset.moving;
        };
        clearTimeout(timer);
        document.documentElement.dataset.moving = "";
        timer = setTimeout(settle, 150);
    });
}
