/** Milliseconds between two lines about the same thing: who is let to make a log line must not fill the disk. */
const REST = 10_000

/** Has `tell` called when something happens, seldom; `times`: how often it has happened since it was told. */
export function createComplaint(tell: (times: number) => void): () => void {
  let times = 0
  let silentUntil = -Infinity
  return () => {
    times++
    if (performance.now() < silentUntil) return
    silentUntil = performance.now() + REST
    tell(times)
    times = 0
  }
}
