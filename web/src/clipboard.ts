/* Copies a text, or explains what to do if the browser refuses: without permission, or on a page
 * that is not secure. */
import { say } from "./state";

export async function copyText(text: string, done: string, refused: string): Promise<void> {
    try {
        await navigator.clipboard.writeText(text);
        say(done);
    } catch {
        say(refused);
    }
}
