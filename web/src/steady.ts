/*
 * The clicked row stays in place when the selection appears next to its list: whatever is above it
 * then has less width, and so takes more lines.
 */
import { useEffect, useRef } from "preact/hooks";

function topIn(list: Element, row: Element): number {
    return row.getBoundingClientRect().top - list.getBoundingClientRect().top;
}

/* For the list that scrolls. */
export function useSteady<T extends HTMLElement>() {
    const list = useRef<T>(null);
    useEffect(() => {
        const box = list.current;
        if (!box) return;
        let clicked: { row: Element; top: number } | null = null;
        const onClick = (event: Event) => {
            const row = (event.target as Element).closest("tr, li");
            clicked = row && { row, top: topIn(box, row) };
        };
        const onScroll = () => {
            if (clicked) clicked.top = topIn(box, clicked.row);
        };
        const sizes = new ResizeObserver(() => {
            if (clicked?.row.isConnected) box.scrollTop += topIn(box, clicked.row) - clicked.top;
        });
        box.addEventListener("click", onClick, true);
        box.addEventListener("scroll", onScroll, { passive: true });
        sizes.observe(box);
        return () => {
            box.removeEventListener("click", onClick, true);
            box.removeEventListener("scroll", onScroll);
            sizes.disconnect();
        };
    }, []);
    return list;
}
