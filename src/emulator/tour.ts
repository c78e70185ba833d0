import { setTimeout as pause } from 'node:timers/promises'
import { request } from 'undici'
import { readDuration } from './duration.ts'
import type { PlannedSession, Scenario } from './scenario/schema.ts'
import { scriptFor } from './scenario/script.ts'
import type { Step } from './step.ts'

export interface TourOptions {
  baseUrl: string
  token: string
  scenario: Scenario
  /** Called with one sentence for each action of the tour. */
  report?: (line: string) => void
  /** Interval of the checks for actions to resolve. */
  lookEveryMs?: number
  /** Awaited before a person answers: an app may have to learn of the action first. */
  beforeAnswer?: (callId: string) => Promise<void>
}

/** How much work a tour starts. A caller that counts it knows when everything has come. */
export interface TourCounts {
  sessions: number
  messages: number
  turns: number
  calls: number
  approvals: number
  questions: number
  /** Messages whose run does not start: the session fails without a turn. */
  unstarted: number
}

interface Places {
  sessions: string
  message: string
  body(text: string): Record<string, unknown>
}

/** The maximum time until an action must appear; then the tour gives up. */
const PATIENCE_MS = 30_000

/**
 * Plays the sessions of a scenario over the public interface, as any client would, with the routes of the description.
 * Resolves once everything was sent, and every planned approval and answer was given.
 */
export async function playTour(options: TourOptions): Promise<TourCounts> {
  const client = new Client(options.baseUrl, options.token)
  const places = findPlaces(await client.call('GET', '/v1/openapi.json'))
  const plan = options.scenario.sessions ?? []
  await Promise.all(plan.map((session) => playSession(client, places, session, options)))
  return countsOf(options.scenario)
}

async function playSession(
  client: Client,
  places: Places,
  plan: PlannedSession,
  options: TourOptions,
): Promise<void> {
  const { title, metadata, tools, messages, resolve = [] } = plan
  const created = await client.call('POST', places.sessions, {
    title,
    ...(metadata === undefined ? {} : { metadata }),
    ...(tools === undefined ? {} : { agent: { tools } }),
  })
  const id = textIn(created, 'id')
  options.report?.(`created "${title}"`)
  for (const message of messages) {
    await client.call('POST', places.message.replace('{session_id}', id), places.body(message))
    options.report?.(`sent to "${title}": ${message.trim().split('\n').join(' / ')}`)
  }
  for (const entry of resolve) {
    const callId = await waitForAction(
      client,
      `${places.sessions}/${id}`,
      entry.type,
      options.lookEveryMs ?? 200,
    )
    await options.beforeAnswer?.(callId)
    await pause(readDuration(entry.after ?? '0s') ?? 0)
    const verdict = entry.type === 'approval' ? { approved: entry.approved } : { answer: entry.answer }
    await client.call('POST', `/_emulator/actions/${callId}`, verdict)
    options.report?.(`a person resolved the ${entry.type} of "${title}"`)
  }
}

async function waitForAction(client: Client, path: string, type: string, everyMs: number): Promise<string> {
  const limit = performance.now() + PATIENCE_MS
  while (performance.now() < limit) {
    const actions = fieldOf(await client.call('GET', path), 'required_actions')
    const found: unknown = Array.isArray(actions)
      ? actions.find((entry) => fieldOf(entry, 'type') === type)
      : undefined
    if (found !== undefined) return textIn(found, 'call_id')
    await pause(everyMs)
  }
  throw new Error(`no ${type} appeared within ${PATIENCE_MS / 1000} seconds`)
}

class Client {
  readonly #base: string
  readonly #token: string

  constructor(base: string, token: string) {
    this.#base = base
    this.#token = token
  }

  async call(method: 'GET' | 'POST', path: string, body?: unknown): Promise<unknown> {
    const response = await request(this.#base + path, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const answer: unknown = await response.body.json()
    if (response.statusCode < 300) return answer
    throw new Error(`${method} ${path} was answered ${response.statusCode}: ${JSON.stringify(answer)}`)
  }
}

/**
 * Finds the message operation by its shape: the POST whose body accepts the type `input.steer`,
 * with its text in the other string.
 */
function findPlaces(description: unknown): Places {
  for (const [path, operations] of Object.entries(recordIn(description, 'paths'))) {
    const schema = ['post', 'requestBody', 'content', 'application/json', 'schema', 'properties'].reduce(
      fieldOf,
      operations,
    )
    const fields = Object.entries(isRecord(schema) ? schema : {})
    const kind = fields.find(([, field]) => kindsOf(field).includes('input.steer'))
    const text = fields.find(
      ([, field]) => fieldOf(field, 'type') === 'string' && kindsOf(field).length === 0,
    )
    const plain = kindsOf(kind?.[1]).find((word) => word !== 'input.steer')
    if (kind === undefined || text === undefined || plain === undefined) continue
    return {
      sessions: '/v1/sessions',
      message: path,
      body: (said) => ({ [kind[0]]: plain, [text[0]]: said }),
    }
  }
  throw new Error('the description shows no operation for a message')
}

function kindsOf(schema: unknown): string[] {
  const values = fieldOf(schema, 'enum')
  return Array.isArray(values) ? values.filter((value) => typeof value === 'string') : []
}

/**
 * The agent's actions for the messages of the plan, if every call is answered and every approval is
 * given.
 */
function countsOf(scenario: Scenario): TourCounts {
  const plan = scenario.sessions ?? []
  const counts = {
    sessions: plan.length,
    messages: 0,
    turns: 0,
    calls: 0,
    approvals: 0,
    questions: 0,
    unstarted: 0,
  }
  for (const { messages } of plan) {
    for (const message of messages) {
      const { steps } = scriptFor(scenario, message, '')
      counts.messages += 1
      if (steps[0]?.do === 'cannot_start') {
        counts.unstarted += 1
        continue
      }
      counts.turns += 1
      for (const step of steps) count(counts, step)
    }
  }
  return counts
}

function count(counts: TourCounts, step: Step): void {
  if (step.do === 'call') counts.calls += step.calls.length
  if (step.do === 'ask') counts.questions += 1
  if (step.do === 'approve') {
    counts.approvals += 1
    count(counts, step.step)
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function fieldOf(value: unknown, key: string): unknown {
  return isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

function recordIn(value: unknown, key: string): Record<string, unknown> {
  const field = fieldOf(value, key)
  return isRecord(field) ? field : {}
}

function textIn(value: unknown, key: string): string {
  const field = fieldOf(value, key)
  if (typeof field !== 'string') throw new Error(`the service answered without ${key}`)
  return field
}
