import { Worker } from 'node:worker_threads'

/**
 * Ends the process of a test file that takes longer than any should, milliseconds: a change may well make an endless
 * loop, which no timer of the tests' own thread would interrupt.
 */
const LIMIT = 10_000

new Worker(`setTimeout(() => process.kill(process.pid, 'SIGKILL'), ${LIMIT})`, { eval: true }).unref()
