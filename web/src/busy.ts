/*
 * Counts the page's pending work: requests without an answer, and a scheduled frame. While there is any, the root
 * element has data-busy, so that a test can wait for the end of the work instead of for a fixed time.
 */
let underWay = 0;

export function begin(): void {
    if (underWay++ === 0) document.documentElement.dataset.busy = "";
}

export function finish(): void {
    if (--underWay === 0) delete document.documentElement.dataset.busy;
}

/*
 * Counts `work` as pending until it is done. Whatever its awaiter does with the result runs in a
 * microtask, before another task can see the end.
 */
export async function whileBusy<T>(work: Promise<T>): Promise<T> {
    begin();
    try {
        return await work;
    } finally {
        finish();
    }
}
