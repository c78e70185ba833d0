import { isObject, type JsonObject } from '../../std/json.ts'
import { writing, type Check } from '../check.ts'
import type { Operation } from '../description.ts'
import { at } from '../kind.ts'
import { fill } from '../places.ts'
import { messageOf } from '../reply.ts'
import { Stuck } from '../stuck.ts'
import { MISSING_IDS } from './refusals.ts'

const STRAY = 'conform_stray'

/** Every operation with a body is sent an unknown field: it must be refused, without an effect. */
const strays = writing('an unknown field is refused in every body', 'ERR-04 GEN-25', async (trial) => {
  const { description, health } = trial.ground
  if (description.operations.length === 0) throw new Stuck('there is no readable description')
  const id = await trial.session()
  const held = at(health.json, 'scopes')
  for (const operation of description.operations) {
    if (operation.body === null) continue
    const scopes = description.scopes(operation)
    if (!scopes.every((one) => Array.isArray(held) && (held as unknown[]).includes(one))) continue
    const body: JsonObject = {
      [STRAY]: true,
      ...required(operation, (schema) => description.schemas.resolve(schema)),
    }
    const path = fill(operation, { ...MISSING_IDS, session: id })
    const reply = await trial.deployment.call(operation.method, path, { body })
    // If the refusal does not name the unknown field, another fault was found first: the check cannot judge this
    // operation.
    if (reply.status >= 400 && !messageOf(reply).includes(STRAY)) continue
    if (!trial.refused('ERR-04', reply, 400, 'invalid_request')) continue
    trial.mentions('GEN-25', reply, STRAY, ...Object.keys(description.schemas.properties(operation.body)))
  }
  await trial.remove(id)
})

/** Fills required strings, so that the unknown field is, if possible, the only fault. */
function required(operation: Operation, resolve: (schema: unknown) => JsonObject): JsonObject {
  const schema = resolve(operation.body)
  const names = Array.isArray(schema['required']) ? schema['required'] : []
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const strings = names.filter(
    (name): name is string => typeof name === 'string' && resolve(properties[name])['type'] === 'string',
  )
  return Object.fromEntries(strings.map((name) => [name, 'conform']))
}

const buckets = writing(
  'each kind of request has a rate bucket of its own',
  'LIM-34 LIM-35 LIM-37 LIM-39 LIM-40',
  async (trial) => {
    const { budget } = trial.places
    if (budget === null) throw new Stuck('the description does not name the budget headers')
    const made = await trial.create({})
    const read = await trial.get('/v1/health')
    const [creating, reading] = [made.headers[budget.bucket], read.headers[budget.bucket]]
    trial.expect(
      'LIM-34 LIM-35',
      made,
      'a bucket other than that of reads',
      creating !== undefined && creating !== reading,
      creating,
    )
    const again = await trial.get('/v1/health')
    trial.expect(
      'LIM-35 LIM-40',
      again,
      `the bucket ${reading ?? ''}`,
      again.headers[budget.bucket] === reading,
    )
    trial.note(
      'LIM-37',
      `${creating ?? ''}: ${made.headers[budget.left] ?? ''} left; ${reading ?? ''}: ${again.headers[budget.left] ?? ''} left`,
    )
    await trial.remove(String(at(made.json, 'id')))
  },
)

export const bodies: readonly Check[] = [strays, buckets]
