/* Copies a text, or says what to do where the browser refuses that: without permission, or on a page that is not secure. */
import { say } from "./state";

export async function copyText(text: string, done: string, refused: string): Promise<void> {
    try {
        await navigator.clipboard.writeText(text);
        say(done);
    } catch {
        say(refused);
    }
}
