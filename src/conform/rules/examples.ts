import { isObject } from '../../std/json.ts'
import { reading, type Check } from '../check.ts'
import { STREAM_EVENTS, WEBHOOK_EVENTS } from '../interface.ts'
import { kind, object, textAt } from '../kind.ts'
import { Stuck } from '../stuck.ts'

const PAYLOADS: readonly (readonly [string, string, string])[] = [
  ['EVT-67', 'agent.text', 'delta'],
  ['EVT-69', 'agent.message', 'text'],
  ['EVT-70', 'agent.tool_call', 'toolName'],
  ['EVT-71', 'agent.tool_call', 'args'],
  ['EVT-72', 'tool.required', 'name'],
  ['EVT-73', 'tool.required', 'arguments'],
  ['EVT-74', 'mcp.unavailable', 'server'],
  ['EVT-75', 'mcp.unavailable', 'reason'],
  ['EVT-76', 'approval.resolved', 'approved'],
  ['EVT-77', 'approval.resolved', 'toolCallId'],
  ['EVT-78', 'approval.resolved', 'name'],
  ['EVT-79', 'approval.resolved', 'code'],
]

const examples = reading(
  'the description has an example of every event',
  'HLT-15 EVT-38..64 EVT-67 EVT-69..79 EVT-83 WHS-16..23',
  async (trial) => {
    const { description, described } = trial.ground
    if (description.operations.length === 0) throw new Stuck('there is no readable description')
    const found = new Map<string, unknown>()
    for (const example of examplesIn(description.document)) {
      const name = textAt(example, 'type')
      if (name !== '' && !found.has(name)) found.set(name, example)
    }
    const missing = STREAM_EVENTS.map(([name]) => name).filter((name) => !found.has(name))
    trial.expect(
      'HLT-15',
      described,
      'an example of every event',
      missing.length === 0,
      `missing: ${missing.join(', ')}`,
    )
    for (const [name, id] of STREAM_EVENTS)
      trial.expect(id, described, `an example of ${name}`, found.has(name), 'none')
    for (const [id, name, field] of PAYLOADS) {
      const example = found.get(name)
      if (example !== undefined)
        trial.value(id, described, `payload of ${name}`, payloadOf(example), having(field))
    }
    const others = STREAM_EVENTS.filter(([name]) => !PAYLOADS.some(([, known]) => known === name))
    trial.note(
      'EVT-83',
      others
        .map(([name]) => `${name}: ${Object.keys(payloadOf(found.get(name)) ?? {}).join('+') || 'nothing'}`)
        .join('; '),
    )
    const text = JSON.stringify(description.document)
    for (const [name, id] of WEBHOOK_EVENTS)
      trial.expect(id, described, `the webhook event ${name}`, text.includes(`"${name}"`), 'not described')
  },
  [],
)

function payloadOf(example: unknown): object | undefined {
  const payload = isObject(example) ? example['payload'] : undefined
  return isObject(payload) ? payload : undefined
}

function having(field: string) {
  return kind(
    `an object with ${field}`,
    (value) => object.fits(value) && isObject(value) && value[field] !== undefined,
  )
}

/** The most values that are read of a description. */
const VALUES_MAX = 200_000

/** Every value of an `example` or of `examples` in the whole description. */
export function examplesIn(document: unknown): unknown[] {
  const found: unknown[] = []
  const waiting: unknown[] = [document]
  for (let looked = 0; waiting.length > 0 && looked < VALUES_MAX; looked++) {
    const value = waiting.pop()
    if (Array.isArray(value)) waiting.push(...(value as unknown[]))
    if (!isObject(value)) continue
    for (const [key, inner] of Object.entries(value)) {
      if (key === 'example') found.push(inner)
      if (key === 'examples' && isObject(inner))
        for (const example of Object.values(inner))
          found.push(isObject(example) && 'value' in example ? example['value'] : example)
      if (key === 'examples' && Array.isArray(inner)) found.push(...(inner as unknown[]))
      waiting.push(inner)
    }
  }
  return found
}

export const exampleChecks: readonly Check[] = [examples]
