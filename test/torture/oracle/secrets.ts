import { readFileSync } from 'node:fs'
import type { Fault } from '../../checker/history.ts'
import type { Evidence, Round } from './evidence.ts'

const ROUTES = [
  '/metrics',
  '/livez',
  '/readyz?verbose',
  '/startupz?verbose',
  '/openapi.json',
  '/api/status',
  '/api/attention',
  '/api/handlers',
  '/api/tools',
  '/api/nothing',
]
const LISTS = ['/api/events', '/api/sessions', '/api/calls', '/api/deliveries']

/** All that a program, or several on one store, shows and stores. */
export interface Shown extends Pick<Round, 'sidecar' | 'mood' | 'tally' | 'logs'> {
  /** What must never be seen outside, by name. */
  readonly secrets: ReadonlyMap<string, string>
  /** All that is stored. */
  stored(): Promise<[where: string, text: string][]>
}

/**
 * I13: no secret is where people look, or in the database at all; those of the subscriptions are in the database alone, and
 * what a handler said in failing is with its delivery alone.
 */
export async function kept(world: Shown, { ledger, webhookSecrets }: Evidence): Promise<Fault[]> {
  const { sidecar, logs, secrets, tally } = world
  const shown: [where: string, text: string][] = [
    ...logs.map((log): [string, string] => ['the log', readFileSync(log, 'latin1')]),
    ['an answer to the model', ledger.answers.map(({ output, error }) => `${output} ${error}`).join('\n')],
  ]
  for (const route of ROUTES) shown.push([route, (await sidecar.ask('GET', route)).text])
  for (const list of LISTS) shown.push([list, JSON.stringify(await sidecar.list(list))])
  const stored = await world.stored()
  const subscriptions = webhookSecrets.map((secret): [string, string] => [
    'the secret of a subscription',
    secret,
  ])
  const refusals = [['what a handler said in failing', world.mood.refusal] as const]
  const elsewhere = shown.filter(([where]) => where !== '/api/deliveries')
  tally.add('places searched for secrets', shown.length + stored.length)
  return [
    ...found([...secrets], [...shown, ...stored]),
    ...found(subscriptions, shown),
    ...found(refusals, elsewhere),
  ]
}

function found(
  secrets: readonly (readonly [string, string])[],
  places: readonly (readonly [string, string])[],
): Fault[] {
  return secrets.flatMap(([name, secret]) =>
    places
      .filter(([, text]) => text.includes(secret))
      .map(([where]) => ({ invariant: 'I13', message: `${name} stands in ${where}` })),
  )
}
