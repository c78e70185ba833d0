import { expect, test } from 'vitest'
import { isObject, parseJson } from '../../src/std/json.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { group } from './document.ts'

/** Their keys are chosen by the app, the agent or the type of an event; or the list is empty while nothing waits. */
const OPEN = new Set(['metadata', 'arguments', 'payload', 'tools', 'required_actions'])

/** The path of every key in it. An entry of a list has `[]`. */
function keysOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return [...new Set(value.flatMap((entry) => keysOf(entry, `${path}[]`)))]
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([key, inside]) => [
    `${path}.${key}`,
    ...(OPEN.has(key) ? [] : keysOf(inside, `${path}.${key}`)),
  ])
}

test('the payloads in src/sidecar/README.md have the fields that a handler gets', async () => {
  const examples = group('payload').map((block) => ({ type: block.value('type') ?? '', text: block.text }))
  expect(examples.length).toBe(6)
  await using rig = await Rig.open({ tools: { lookup_order: {} } })
  rig.app.run = () => Promise.resolve({ body: 'shipped' })
  await rig.client.start(
    'call lookup_order {"order_id":"42"}',
    'say {{last}}',
    'write outputs/order.txt {{last}}',
  )
  for (const { type, text } of examples) {
    const event = await until(type, () => rig.app.delivered('app').find((one) => one.type === type))
    const keys = keysOf(parseJson(JSON.stringify(event.data))).toSorted()
    expect({ type, keys: keysOf(parseJson(text)).toSorted() }).toEqual({ type, keys })
  }
})
