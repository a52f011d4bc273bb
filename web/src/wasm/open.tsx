/* Opens a trace in the page: dropping or choosing a file, and the banner that shows where the trace comes from. */
import { signal } from "@preact/signals";
import { say, status } from "../state";
import { leave } from "./dropped";
import { source } from "./source";

const over = signal(false);
const busy = signal(false);

/* Opening loads the page again, which would lose everything if its server has ended. */
async function checkServer(): Promise<void> {
    const there = await fetch("worker.js", { method: "HEAD" }).catch(() => null);
    if (!there?.ok) throw new Error("The server of this page has ended: trail view starts one.");
}

async function goBack(): Promise<void> {
    try {
        await checkServer();
        location.href = "./";
    } catch (error) {
        say(error instanceof Error ? error.message : String(error));
    }
}

async function open(file: File): Promise<void> {
    if (busy.value) return;
    busy.value = true;
    try {
        await checkServer();
        const key = await leave(file);
        location.href = `./?opened=${key}`;
    } catch (error) {
        say(`${file.name} cannot be opened: ${error instanceof Error ? error.message : error}`);
    } finally {
        busy.value = false;
    }
}

function chosen(files: FileList | null | undefined): void {
    if (!files?.length) return;
    if (files.length > 1) say("One trace at a time.");
    else void open(files[0]);
}

function hasFiles(event: DragEvent): boolean {
    return event.dataTransfer?.types.includes("Files") ?? false;
}

/* Accepts a file dropped anywhere on the page. */
export function acceptDrops(): void {
    if (source.value === "file") return;
    addEventListener("dragover", (event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        over.value = true;
    });
    addEventListener("dragleave", (event) => {
        if (!event.relatedTarget) over.value = false;
    });
    addEventListener("drop", (event) => {
        over.value = false;
        if (!hasFiles(event)) return;
        event.preventDefault();
        chosen(event.dataTransfer?.files);
    });
}

export function OpenButton() {
    if (source.value === "file") return null;
    return (
        <label
            class="button optional"
            title="Opens a trace in this page alone: the server does not see it."
        >
            Open a file
            <input
                type="file"
                class="hidden"
                onChange={(event) => chosen(event.currentTarget.files)}
            />
        </label>
    );
}

/* Shows where the trace comes from, unless that is the server. */
export function SourceBanner() {
    if (over.value)
        return (
            <div class="banner source" role="status">
                Drop a trace: it is opened in this page, and goes nowhere else.
            </div>
        );
    if (source.value === "server") return null;
    const now = status.value;
    if (now?.done && now.error && !now.version)
        return (
            <div class="banner source" role="status">
                <button type="button" class="textlink" onClick={() => void goBack()}>
                    Back to the server's trace
                </button>
            </div>
        );
    return (
        <div class="banner source" role="status">
            {source.value === "file" ? (
                "The trace is in this file, and read in this page: nothing is sent anywhere. SQL needs the command."
            ) : (
                <>
                    {status.value?.title.split("/").pop() ?? "The file"} is read in this page: the
                    server has not seen it. SQL needs the command.{" "}
                    <button type="button" class="textlink" onClick={() => void goBack()}>
                        Back to the server's trace
                    </button>
                </>
            )}
        </div>
    );
}
