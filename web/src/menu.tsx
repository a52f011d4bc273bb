/* A menu at the pointer or at the selection, with the commands for what is there. */
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { inWords } from "./words";

export interface Item {
    text: string;
    /* The key that does the same. */
    key?: string;
    run: () => void;
}

interface Menu {
    x: number;
    y: number;
    title: string;
    /* Groups of commands, with a line between two. */
    groups: Item[][];
    /* The element that had the focus. */
    before: Element | null;
}

const menu = signal<Menu | null>(null);

export function isMenuKey(event: KeyboardEvent): boolean {
    return event.key === "ContextMenu" || (event.shiftKey && event.key === "F10");
}

/* `x` and `y` are page coordinates. Empty groups are omitted; without any command there is no
 * menu. */
export function openMenu(x: number, y: number, title: string, groups: Item[][]): void {
    const filled = groups.filter((items) => items.length > 0);
    const before = menu.peek()?.before ?? document.activeElement;
    menu.value = filled.length > 0 ? { x, y, title, groups: filled, before } : null;
}

function close(): void {
    const before = menu.peek()?.before;
    menu.value = null;
    if (before instanceof HTMLElement) before.focus();
}

/* The command that the key leads to; -1: not a key of the menu. */
function next(key: string, at: number, count: number): number {
    if (key === "ArrowDown") return (at + 1) % count;
    if (key === "ArrowUp") return (at + count - 1) % count;
    if (key === "Home") return 0;
    return key === "End" ? count - 1 : -1;
}

function Open(props: { of: Menu }) {
    const { of } = props;
    const box = useRef<HTMLDivElement>(null);
    const buttons = () => [...(box.current?.querySelectorAll("button") ?? [])];
    useLayoutEffect(() => {
        if (!box.current) return;
        const { offsetWidth, offsetHeight, style } = box.current;
        style.left = `${Math.max(4, Math.min(of.x, innerWidth - offsetWidth - 4))}px`;
        style.top = `${Math.max(4, Math.min(of.y, innerHeight - offsetHeight - 4))}px`;
        buttons()[0]?.focus();
    }, [of]);
    useEffect(() => {
        const outside = (event: Event) => {
            if (!box.current?.contains(event.target as Node)) menu.value = null;
        };
        addEventListener("pointerdown", outside, true);
        addEventListener("wheel", outside, true);
        return () => {
            removeEventListener("pointerdown", outside, true);
            removeEventListener("wheel", outside, true);
        };
    }, []);
    const onKeyDown = (event: KeyboardEvent) => {
        /* The page's own keys are inactive while the menu is open. */
        event.stopPropagation();
        if (event.key === "Escape" || event.key === "Tab") close();
        const all = buttons();
        const to = next(event.key, all.indexOf(event.target as HTMLButtonElement), all.length);
        all[to]?.focus();
        if (to >= 0 || event.key === "Escape" || event.key === "Tab") event.preventDefault();
    };
    return (
        <div
            class="menu"
            role="menu"
            tabIndex={-1}
            aria-label={of.title}
            ref={box}
            onKeyDown={onKeyDown}
            onContextMenu={(event) => event.preventDefault()}
        >
            <div class="title" aria-hidden="true">
                {of.title}
            </div>
            {of.groups.map((items, i) => (
                // biome-ignore lint/a11y/useSemanticElements: a group of a menu
                <div role="group" key={i}>
                    {items.map((item) => (
                        <button
                            type="button"
                            role="menuitem"
                            key={item.text}
                            aria-keyshortcuts={item.key}
                            onClick={() => {
                                close();
                                item.run();
                            }}
                        >
                            {capital(inWords(item.text))}
                            {item.key && <kbd>{item.key}</kbd>}
                        </button>
                    ))}
                </div>
            ))}
        </div>
    );
}

function capital(text: string): string {
    return text.charAt(0).toUpperCase() + text.slice(1);
}

export function ContextMenu() {
    return menu.value && <Open of={menu.value} />;
}
