import type { Scene } from './scene.ts'

const PLACE = /\{\{(last|message|instructions|calls\.[^\s{}]+)\}\}/g

/**
 * `value` with what is known in place of `{{last}}` (the output of the last call), `{{calls.NAME}}` (of the last call of
 * that name), `{{message}}` and `{{instructions}}`, in every string inside it. A name that nobody called stays as it is.
 */
export function fillIn<T>(scene: Scene, value: T): T
export function fillIn(scene: Scene, value: unknown): unknown {
  if (typeof value === 'string') {
    return value.replaceAll(PLACE, (place, name: string) => wordFor(scene, name) ?? place)
  }
  if (Array.isArray(value)) return value.map((entry: unknown) => fillIn(scene, entry))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, fillIn<unknown>(scene, entry)]))
}

function wordFor({ run, settings }: Scene, name: string): string | undefined {
  if (name === 'last') return run.last
  if (name === 'message') return run.message
  if (name === 'instructions') return settings.instructions
  return run.outputs.get(name.slice('calls.'.length))
}
