/*
 * One file for others: the viewer with the trace in it, which begins with the view and the notes of this page. It is what
 * `trail report --embed` writes, with one more element.
 */
import { api } from "./api";
import { isFramed } from "./framed";
import { addNotes, notes } from "./notes";
import { say, status } from "./state";
import { download } from "./table";
import { source } from "./wasm/source";

const ID = "trail-start";

interface Start {
    /* The fragment of the URL. */
    place: string;
    /* As in the file of notes. */
    notes: string;
}

/* A trace that was opened in the page has no server that could pack it. */
function canShare(): boolean {
    return source.value === "server" && !isFramed && Boolean(status.value?.can_run);
}

/* As JSON that does not end its element. */
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

/* In such a file: begins with the view, unless the address has one, and with the notes. */
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
