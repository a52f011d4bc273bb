/* Writes the address once the view has come to rest. */
import { effect } from "@preact/signals";

/*
 * Calls `write` when the fragment has not changed for a moment, because browsers limit the rate; until then the root element
 * has data-moving.
 */
export function whenSettled(fragment: () => string, write: (text: string) => void): void {
    let timer = 0;
    effect(() => {
        const text = fragment();
        clearTimeout(timer);
        document.documentElement.dataset.moving = "";
        timer = setTimeout(() => {
            write(text);
            delete document.documentElement.dataset.moving;
        }, 150);
    });
}
