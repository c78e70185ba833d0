/** Milliseconds on the machine's monotonic clock: the same in every process, so that they can be subtracted. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
