/* Bookmarks with notes, stored in the browser for each trace; can be saved to and loaded from a file. */
import { effect, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { duration } from "./format";
import { laneTitle } from "./lanes";
import { timeText } from "./ruler";
import { spanWords } from "./span_words";
import { say, selected, span, status, toFragment, view } from "./state";
import { download } from "./table";

interface Note {
    text: string;
    from: number;
    to: number;
    /* The fragment of the URL at the time of the bookmark. */
    place: string;
}

export const notes = signal<Note[]>([]);

function isNote(value: unknown): value is Note {
    const note = value as Note;
    return (
        typeof note?.text === "string" &&
        typeof note.place === "string" &&
        Number.isFinite(note.from) &&
        Number.isFinite(note.to)
    );
}

function parse(text: string): Note[] {
    const found: unknown = JSON.parse(text);
    const list = Array.isArray(found) ? found : [];
    return list.filter(isNote).slice(0, 1000);
}

/* The key of this trace's notes: title, format version and length identify it. */
function storageKey(): string | null {
    const now = status.value;
    return now?.done ? `trail.notes ${now.title} ${now.version} ${now.end}` : null;
}

export function keepNotes(): void {
    let loaded = "";
    effect(() => {
        const key = storageKey();
        if (!key) return;
        if (loaded !== key) {
            loaded = key;
            try {
                const kept = parse(localStorage.getItem(key) ?? "[]");
                if (kept.length) notes.value = [...kept, ...notes.peek()];
            } catch {
                /* Not written by this page: ignored. */
            }
        }
        localStorage.setItem(key, JSON.stringify(notes.value));
    });
}

export function addNote(): void {
    const { from, to } = view.value;
    const now = span.value;
    const of = selected.value?.kind ?? "goroutine";
    const text = now ? `${spanWords(now, " (", ")")} of ${laneTitle(of, { id: now.id })}` : "";
    notes.value = [...notes.value, { text, from, to, place: toFragment() }];
    say("A bookmark was made: below, under Notes, it can be given a text.");
}

function change(at: number, text: string): void {
    notes.value = notes.value.map((note, i) => (i === at ? { ...note, text } : note));
}

/* Adds notes from a file; throws if it contains none. */
export function addNotes(text: string): void {
    notes.value = [...notes.value, ...parse(text)];
}

function load(file: File | undefined): void {
    void file?.text().then((text) => {
        try {
            addNotes(text);
        } catch {
            say(`${file.name} holds no notes of trail.`);
        }
    });
}

/* `children`: further buttons. */
export function NotesPanel(props: { children?: ComponentChildren }) {
    return (
        <div>
            <div class="buttons">
                <button type="button" onClick={addNote}>
                    Bookmark this view (M)
                </button>
                <button
                    type="button"
                    disabled={notes.value.length === 0}
                    onClick={() =>
                        download(
                            "notes.json",
                            "application/json",
                            JSON.stringify(notes.value, null, 1),
                        )
                    }
                >
                    Save to a file
                </button>
                {props.children}
                <label class="button">
                    Load from a file
                    <input
                        type="file"
                        class="hidden"
                        accept="application/json"
                        onChange={(event) => load(event.currentTarget.files?.[0])}
                    />
                </label>
            </div>
            {notes.value.length === 0 && (
                <p class="empty">No bookmarks yet. They are kept in this browser.</p>
            )}
            <ul class="notes">
                {notes.value.map((note, i) => (
                    <li key={i}>
                        <button
                            type="button"
                            onClick={() => {
                                location.hash = note.place;
                            }}
                        >
                            {timeText(note.from, (note.to - note.from) / 100)},{" "}
                            {duration(note.to - note.from)}
                        </button>
                        <input
                            aria-label="Note"
                            value={note.text}
                            placeholder="what is to be seen here"
                            onInput={(event) => change(i, event.currentTarget.value)}
                        />
                        <button
                            type="button"
                            aria-label="Remove the bookmark"
                            onClick={() => {
                                notes.value = notes.value.filter((_, other) => other !== i);
                            }}
                        >
                            ×
                        </button>
                    </li>
                ))}
            </ul>
        </div>
    );
}
