/** Characters of a function's name that are shown; the service allows 64. */
const NAME = 64

/** The action to take for calls that no configured tool answers. */
export function adviceOn(name: string): string {
  return `no tool answers \`${name.slice(0, NAME)}\`: add it under \`tools\``
}
