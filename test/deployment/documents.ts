import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseAllDocuments } from 'yaml'

export const ROOT = path.resolve(import.meta.dirname, '../..')

export interface Instruction {
  /** `COPY`, `RUN`, … */
  name: string
  text: string
}

export interface Stage {
  base: string
  name: string | null
  instructions: Instruction[]
}

export function text(file: string): string {
  return readFileSync(path.join(ROOT, file), 'utf8')
}

/** The stages of the Dockerfile, comments left out. */
export function stages(): Stage[] {
  const lines = text('Dockerfile')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const found: Stage[] = []
  for (const line of lines) {
    const [, name = '', rest = ''] = /^(\w+) (.*)$/.exec(line) ?? []
    if (name === 'FROM') {
      const [, base = '', , alias] = /^(\S+)( AS (\S+))?$/.exec(rest) ?? []
      found.push({ base, name: alias ?? null, instructions: [] })
    } else found.at(-1)?.instructions.push({ name, text: rest })
  }
  return found
}

/** What the image is: its last stage. */
export function image(): Stage {
  const last = stages().at(-1)
  if (last === undefined) throw new Error('the Dockerfile has no stage')
  return last
}

/** The text of the one instruction of that name in the last stage. */
export function instruction(name: string): string {
  const found = image().instructions.filter((one) => one.name === name)
  if (found.length !== 1) throw new Error(`the Dockerfile has ${found.length} ${name}`)
  return found[0]?.text ?? ''
}

/** The words of `CMD [...]`. */
export function command(): string[] {
  return JSON.parse(instruction('CMD')) as string[]
}

/** The words that the health check runs. */
export function healthCheck(): string[] {
  return JSON.parse(instruction('HEALTHCHECK').replace(/^.*?CMD /, '')) as string[]
}

/** Every document of a YAML file. */
export function documents<T>(file: string): T[] {
  return documentsOf<T>(text(file))
}

/** Every document of a YAML text. */
export function documentsOf<T>(yaml: string): T[] {
  return parseAllDocuments(yaml).map((document) => {
    if (document.errors.length > 0) throw document.errors[0] ?? new Error(yaml)
    return document.toJS() as T
  })
}
