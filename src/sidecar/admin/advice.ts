import { TOOL_NAME } from '../../core/tool.ts'

/** Characters of a function's name that are shown; the service allows 64. */
const NAME = 64

/** The action to take for calls that no configured tool answers. */
export function adviceOn(name: string): string {
  const shown = `\`${name.slice(0, NAME)}\``
  return TOOL_NAME.test(name)
    ? `no tool answers ${shown}: add it under \`tools\``
    : `no tool can have the name ${shown}: give the function another name, or answer it in another program`
}
