/** Scripts for a page under measurement. */

/** When something was first seen of it, milliseconds after its load began. */
export const FIRST_PAINT = `new Promise((resolve) => {
  new PerformanceObserver((list) => list.getEntriesByName('first-contentful-paint').forEach((entry) => resolve(entry.startTime)))
    .observe({ type: 'paint', buffered: true })
})`

/**
 * Scrolls to the end of a list of `rows`, a screen and a half each frame: `{ times, most }`, how long each frame took in
 * milliseconds and how many rows there ever were in the page.
 */
export function scrollThrough(rows: number): string {
  return `new Promise((resolve) => {
    const frame = document.querySelector('.window')
    const times = []
    let most = 0
    let last = performance.now()
    let atEnd = 0
    const step = (now) => {
      times.push(now - last)
      last = now
      most = Math.max(most, frame.querySelectorAll('.row').length)
      const before = frame.scrollTop
      frame.scrollTop += 1200
      atEnd = frame.scrollTop === before ? atEnd + 1 : 0
      if (frame.scrollHeight >= ${rows} * 44 && atEnd > 5) resolve({ times, most })
      else requestAnimationFrame(step)
    }
    requestAnimationFrame(step)
  })`
}
