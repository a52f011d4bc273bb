/*
 * Passes a dropped file from one page load to the next: the page is loaded again as ?opened=KEY, so
 * that no state of the previous trace remains. The file is stored in IndexedDB until the new page
 * has copied it: Firefox cannot read a stored file after it was removed.
 */
const STORE = "opened";

function asked<T>(request: IDBRequest<T>): Promise<T> {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error ?? new Error("the database of the browser"));
    });
}

async function inStore<T>(run: (store: IDBObjectStore) => Promise<T>): Promise<T> {
    const opening = indexedDB.open("trail", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    const database = await asked(opening);
    try {
        const transaction = database.transaction(STORE, "readwrite");
        const completed = new Promise<void>((resolve, reject) => {
            transaction.oncomplete = () => resolve();
            transaction.onabort = () => reject(transaction.error);
        });
        const result = await run(transaction.objectStore(STORE));
        await completed;
        return result;
    } finally {
        database.close();
    }
}

export async function leave(file: File): Promise<string> {
    const key = Math.random().toString(36).slice(2);
    await inStore(async (store) => {
        await asked(store.clear());
        await asked(store.put(file, key));
    });
    return key;
}

/* A copy of a Blob, which the browser may keep on disk. */
async function copied(file: Blob): Promise<Blob> {
    try {
        return await new Response(file).blob();
    } catch {
        throw new Error("The browser has no room for a copy of this file: use trail view.");
    }
}

export async function take(key: string): Promise<File | undefined> {
    const stored = await inStore((store) => asked<File | undefined>(store.get(key)));
    const file = stored && new File([await copied(stored)], stored.name);
    await inStore((store) => asked(store.delete(key)));
    return file;
}
