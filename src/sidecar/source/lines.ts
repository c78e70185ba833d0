import { NetworkFault } from '../../std/errors.ts'

/** What one line gives of itself to the parser, characters. The service's largest body is 16 MiB. */
export const LINE_KEPT = 16 * 1024 * 1024
/** A line that is still longer has no end, characters. */
const LINE_MAX = 16 * LINE_KEPT

/**
 * Cuts lines that are too long, so that what stands around them is still read: a persisted frame that nobody can hold has
 * an `id:`, and the stream has to get past it.
 * @returns what to give to the parser of a piece of the stream; throws a NetworkFault when a line has no end.
 */
export function createLineCutter(): (text: string) => string {
  /** Characters of the line that has begun. */
  let length = 0

  const take = (line: string): string => {
    const kept = line.slice(0, Math.max(0, LINE_KEPT - length))
    length += line.length
    if (length > LINE_MAX) throw new NetworkFault('other', `a line is longer than ${LINE_MAX} characters`)
    return kept
  }

  return (text) => {
    const last = lastLineEnd(text)
    if (length + text.length <= LINE_KEPT) {
      length = last === -1 ? length + text.length : text.length - last - 1
      return text
    }
    let kept = ''
    let from = 0
    for (const { index } of text.matchAll(/[\r\n]/g)) {
      kept += take(text.slice(from, index)) + text.charAt(index)
      length = 0
      from = index + 1
    }
    return kept + take(text.slice(from))
  }
}

function lastLineEnd(text: string): number {
  return Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r'))
}
