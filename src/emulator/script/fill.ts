import { TurnEnd } from '../turn.ts'
import type { Scene } from './scene.ts'

/** Maximum characters of one text of a step: four times the limit of a request. */
const LONGEST_TEXT = 4 * 1024 * 1024
const PLACE = /\{\{(last|message|instructions|calls\.[^\s{}]+)\}\}/g

/**
 * `value` with the values for `{{last}}` (the output of the last call), `{{calls.NAME}}` (of the
 * last call of that name), `{{message}}` and `{{instructions}}`, in every string inside it. The
 * placeholder of a name that was never called is not replaced.
 */
export function fillIn<T>(scene: Scene, value: T): T
export function fillIn(scene: Scene, value: unknown): unknown {
  if (typeof value === 'string') return fillText(scene, value)
  if (Array.isArray(value)) return value.map((entry: unknown) => fillIn(scene, entry))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, fillIn<unknown>(scene, entry)]))
}

/** @throws {TurnEnd} when the text would grow past the limit: outputs that hold outputs double with every step. */
function fillText(scene: Scene, text: string): string {
  let length = text.length
  return text.replaceAll(PLACE, (place, name: string) => {
    const word = wordFor(scene, name) ?? place
    length += word.length - place.length
    if (length <= LONGEST_TEXT) return word
    const message = `a step grew past ${LONGEST_TEXT} characters`
    throw new TurnEnd('failed', { code: 'agent_failed', message })
  })
}

function wordFor({ run, settings }: Scene, name: string): string | undefined {
  if (name === 'last') return run.last
  if (name === 'message') return run.message
  if (name === 'instructions') return settings.instructions
  return run.outputs.get(name.slice('calls.'.length))
}
