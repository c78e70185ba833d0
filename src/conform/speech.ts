import type { Schemas } from './schema.ts'

/**
 * The tasks for the agent, each in two forms: in plain words for a real agent, and as a line that the scripted agent
 * of an emulator understands.
 */
export const speech = {
  say: (text: string) => `Reply with one short line and do nothing else.\nsay ${text}`,
  work: (ms: number) =>
    `Run the shell command "sleep ${Math.ceil(ms / 1000)}", wait for it, then stop.\nwait ${ms}ms`,
  hang: () => 'Run the shell command "sleep 600" in the foreground and wait for it.\nhang',
  call: (name: string, given: object) =>
    `Call the function ${name} once with the arguments ${JSON.stringify(given)}, then stop.\ncall ${name} ${JSON.stringify(given)}`,
  shell: (command: string) => `Run the shell command "${command}" once, then stop.\nshell ${command}`,
  write: (path: string, text: string) =>
    `Write the text "${text}" to the file /workspace/${path}, then stop.\nwrite ${path} ${text}`,
  writeLarge: (path: string, mebibytes: number) =>
    `Make the file /workspace/${path}, ${mebibytes} MiB of zeroes, then stop.\nwrite ${path} ${mebibytes}MiB`,
  ask: (question: string) => `Ask me this question, and wait for my answer.\nask ${question}`,
  preview: (port: number) => `Serve any page at port ${port} and open a preview of it.\npreview ${port}`,
  think: (text: string) => `Think about it before you answer.\nthink ${text}`,
  fail: () => 'End this turn as failed, if you can.\nfail on request',
}

/** A body that sends `text` as a message, in the shape that the description shows; null when the shape is unknown. */
export function messageBody(schemas: Schemas, schema: unknown, text: string, steer = false): object | null {
  const variants = [schema, ...schemas.parts(schemas.resolve(schema))]
  for (const variant of variants) {
    const body = fillIn(schemas, variant, text, steer)
    if (body !== null) return body
  }
  return null
}

function fillIn(schemas: Schemas, schema: unknown, text: string, steer: boolean): object | null {
  const properties = schemas.properties(schema)
  const names = Object.keys(properties)
  const free = names.find(
    (name) =>
      schemas.typesOf(properties[name]).includes('string') &&
      schemas.words(properties[name]).length === 0 &&
      /text|content|message|input|prompt/.test(name),
  )
  const kind = names.find((name) => schemas.words(properties[name]).length > 0)
  if (free === undefined) return null
  if (kind === undefined) return steer ? null : { [free]: text }
  const word = schemas.words(properties[kind]).find((one) => one.includes('steer') === steer)
  return word === undefined ? null : { [kind]: word, [free]: text }
}
