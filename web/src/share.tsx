/*
 * Sharing: the link of this view; and one file, the viewer with the trace embedded, which opens
 * with the view and the notes of this page. It is what `trail report --embed` writes, with one more
 * element.
 */
import { api } from "./api";
import { copyText } from "./clipboard";
import { cutCommand, pngOfView, svgOfView } from "./export";
import { isFramed } from "./framed";
import { openMenu } from "./menu";
import { addNotes, notes } from "./notes";
import { say, status, toFragment } from "./state";
import { download } from "./table";
import { source } from "./wasm/source";

const ID = "trail-start";

interface Start {
    /* The fragment of the URL. */
    place: string;
    /* In the form of the notes file. */
    notes: string;
}

/* A trace opened in the page has no server that could pack it. */
function canShare(): boolean {
    return source.value === "server" && !isFramed && Boolean(status.value?.can_run);
}

/* What a link needs to be useful. */
const linkNeeds = {
    server: "It works on this machine, while this trail view runs.",
    page: "The trace is not in it: the same file has to be opened there.",
    file: "It works where this file has the same path.",
};

/* In a comparison, the address of the page does not contain this view. */
export function canLink(): boolean {
    return !isFramed;
}

export async function copyLink(): Promise<void> {
    const link = location.href.replace(/#.*/, "");
    await copyText(
        `${link}#${toFragment()}`,
        `Copied the link of this view. ${linkNeeds[source.value]}`,
        "The browser refuses to copy: copy the address from the address bar (Ctrl L, Ctrl C); it has this view.",
    );
}

/* As JSON that cannot end its element. */
function element(start: Start): string {
    const text = JSON.stringify(start).replaceAll("<", "\\u003c");
    return `<script type="application/json" id="${ID}">${text}</script>\n`;
}

function fileName(title: string): string {
    const name = title.split("/").pop() || "trace";
    return `${name.replace(/\.(trace|out)$/, "")}.html`;
}

export async function saveOneFile(): Promise<void> {
    const start = { place: location.hash.slice(1), notes: JSON.stringify(notes.peek()) };
    say("Packing the viewer and the trace …");
    try {
        const page = await api.embed();
        const at = page.indexOf("<title>");
        const all = [page.slice(0, at), element(start), page.slice(at)].join("");
        download(fileName(status.peek()?.title ?? ""), "text/html", all);
    } catch (error) {
        say((error as Error).message);
    }
}

export function ShareButton() {
    if (!canShare()) return null;
    return (
        <button type="button" onClick={() => void saveOneFile()}>
            Save all in one file
        </button>
    );
}

const images = [
    { text: "save the timeline as PNG", run: pngOfView },
    { text: "save the timeline as SVG", run: svgOfView },
];

/* The button in the head for everything that can be shared. */
export function ShareMenu() {
    if (!canLink()) return null;
    const link = { text: "copy link", run: () => void copyLink() };
    const file = { text: "save all in one file", run: () => void saveOneFile() };
    const cut = { text: "copy the command that cuts the trace to this part", run: cutCommand };
    return (
        <button
            type="button"
            aria-haspopup="menu"
            onClick={(event) => {
                const { left, bottom } = event.currentTarget.getBoundingClientRect();
                openMenu(left, bottom, "Share", [
                    [link, ...(canShare() ? [file] : [])],
                    images,
                    [cut],
                ]);
            }}
        >
            Share
        </button>
    );
}

/* In such a file: opens with the view, unless the address has one, and with the notes. */
export function beginAsShared(): void {
    const text = document.getElementById(ID)?.textContent;
    if (!text) return;
    try {
        const { place, notes } = JSON.parse(text) as Start;
        if (!location.hash) history.replaceState(null, "", `#${place}`);
        addNotes(notes);
    } catch {
        /* Not written by this page: ignored. */
    }
}
