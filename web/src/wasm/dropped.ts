/*
 * Passes a dropped file from one page load to the next: the page is loaded again as ?opened=KEY, so
 * that no state of the previous trace remains. The file is stored in IndexedDB until the new page
 * removes it.
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

export function take(key: string): Promise<File | undefined> {
    return inStore(async (store) => {
        const file = (await asked(store.get(key))) as File | undefined;
        await asked(store.delete(key));
        return file;
    });
}
