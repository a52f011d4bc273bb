// Prints what dt-sql-parser, which has the grammars of these systems, says against statements; nothing if they are good.
//
// usage: node statements.mjs FOLDER_OF_MODULES SparkSQL|TrinoSQL <STATEMENTS
import { existsSync, readFileSync } from 'node:fs'
import { createRequire, register } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'

/* The package is written for bundlers: its imports name folders, and files without their suffix. */
export async function resolve(name, context, next) {
    const from = name.startsWith('.') && context.parentURL?.includes('/node_modules/')
    const url = from && new URL(name, context.parentURL).href
    const found = url && [`${url}.js`, `${url}/index.js`].find((one) => existsSync(fileURLToPath(one)))
    return next(found || name, context)
}

/* This file is also the hook that Node loads in another thread. */
if (process.argv[2] && process.argv[1] === fileURLToPath(import.meta.url) && !globalThis.isHook) {
    const [modules, system] = process.argv.slice(2)
    register(`data:text/javascript,globalThis.isHook=true;export const { resolve } = await import(${JSON.stringify(import.meta.url)})`)
    const parsers = await import(pathToFileURL(createRequire(`${modules}/x.js`).resolve('dt-sql-parser')))
    for (const { startLine, message } of new parsers[system]().validate(readFileSync(0, 'utf8')))
        console.log(`${startLine}: ${message}`)
}
