/** Characters of a function's name that are shown; the service allows 64. */
const NAME = 64

/** What to do about calls of a function that no configured tool is. */
export function adviceOn(name: string): string {
  return `nobody answers \`${name.slice(0, NAME)}\`: add it under \`tools\``
}
