/*
 * What the page has under way: questions without an answer, and the frame that is to be drawn. While there is any,
 * the root has data-busy, so that a test can wait for its end instead of for a time.
 */
let underWay = 0;

export function begin(): void {
    if (underWay++ === 0) document.documentElement.dataset.busy = "";
}

export function finish(): void {
    if (--underWay === 0) delete document.documentElement.dataset.busy;
}

/* Its result, or its error; what follows upon it at once is done before anything else sees the page. */
export async function whileBusy<T>(work: Promise<T>): Promise<T> {
    begin();
    try {
        return await work;
    } finally {
        finish();
    }
}
