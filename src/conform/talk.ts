import type { Frame } from './feed.ts'
import { at, rowsOf, textAt } from './kind.ts'
import type { Reply } from './reply.ts'
import { messageBody } from './speech.ts'
import { Stuck } from './stuck.ts'
import type { Trial } from './trial.ts'

/** The path for a session's messages. @throws {Stuck} when the description does not show it. */
function messagePath(trial: Trial, sessionId: string): string {
  const { message } = trial.places
  if (message === null) throw new Stuck('the description does not show the path of messages')
  return message.path.replace(/\{[^}]*\}/, sessionId)
}

/**
 * Sends a message, or steers, and returns the answer. @throws {Stuck} when the description does not
 * show how.
 */
export function say(trial: Trial, sessionId: string, text: string, steer = false): Promise<Reply> {
  const path = messagePath(trial, sessionId)
  const { schemas } = trial.ground.description
  const body = messageBody(schemas, trial.places.message?.body, text, steer)
  if (body === null)
    throw new Stuck(`the description does not show how to ${steer ? 'steer' : 'send a message'}`)
  return trial.post(path, body)
}

/**
 * Sends a message and waits until the turn is settled. @throws {Stuck} when it does not settle in
 * time.
 */
export async function turnOf(
  trial: Trial,
  sessionId: string,
  text: string,
): Promise<{ turn: unknown; reply: Reply }> {
  await say(trial, sessionId, text)
  return settledTurn(trial, sessionId)
}

export async function settledTurn(trial: Trial, sessionId: string): Promise<{ turn: unknown; reply: Reply }> {
  const over = (json: unknown): boolean =>
    ['ready', 'partial', 'failed'].includes(textAt(json, 'data.0.artifacts'))
  const reply = await trial.until(`/v1/sessions/${sessionId}/turns?order=desc`, ({ json }) => over(json))
  if (!over(reply.json)) throw new Stuck('the agent did not finish its turn in time')
  return { turn: at(reply.json, 'data.0'), reply }
}

/**
 * Waits until the session requires an action of this type. @throws {Stuck} when it does not in
 * time.
 */
export async function required(
  trial: Trial,
  sessionId: string,
  type: string,
): Promise<{ action: unknown; reply: Reply }> {
  const find = (json: unknown): unknown =>
    rowsOf(at(json, 'required_actions')).find((one) => textAt(one, 'type') === type)
  const reply = await trial.until(`/v1/sessions/${sessionId}`, ({ json }) => find(json) !== undefined)
  const action = find(reply.json)
  if (action === undefined) throw new Stuck(`the agent did not ask for a ${type.replace('_', ' ')} in time`)
  return { action, reply }
}

/** Waits until a turn of the session runs. @throws {Stuck} when none runs in time. */
export async function workingTurn(trial: Trial, sessionId: string): Promise<{ turn: unknown; reply: Reply }> {
  const working = (json: unknown): boolean => textAt(json, 'data.0.status') === 'working'
  const path = `/v1/sessions/${sessionId}/turns`
  const reply = await trial.until(path, ({ json }) => working(json))
  if (!working(reply.json)) throw new Stuck('the agent did not start in time')
  return { turn: at(reply.json, 'data.0'), reply }
}

/** The frames of a session on the stream of the organization. @throws {Stuck} when that stream is not open. */
export async function framesOf(
  trial: Trial,
  sessionId: string,
  enough: (frames: readonly Frame[]) => boolean,
): Promise<readonly Frame[]> {
  const { feed, patience } = trial.ground
  if (feed === null) throw new Stuck('the event stream could not be opened')
  await feed.until(() => (enough(feed.of(sessionId)) ? true : undefined), Math.min(patience, 10_000))
  return feed.of(sessionId)
}

/** The items of a session, the oldest first. */
export async function itemsOf(trial: Trial, sessionId: string): Promise<{ items: unknown[]; reply: Reply }> {
  const reply = await trial.get(`/v1/sessions/${sessionId}/items`, { order: 'asc', limit: '100' })
  return { items: rowsOf(reply.json), reply }
}
