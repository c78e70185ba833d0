import { isObject, type JsonObject } from '../std/json.ts'
import type { Belongings } from './belongings.ts'
import { idsOf } from './catalogue.ts'
import type { Deployment } from './deployment.ts'
import type { Description } from './description.ts'
import type { Feed } from './feed.ts'
import { at, textAt, written, type Kind } from './kind.ts'
import type { Places } from './places.ts'
import type { Receiver } from './receiver.ts'
import { codeOf, describeReply, messageOf, type Reply } from './reply.ts'
import { Stuck } from './stuck.ts'
import type { Verdicts } from './verdict.ts'

/** The shared state of all checks of a run. */
export interface Ground {
  readonly deployment: Deployment
  readonly description: Description
  /** The answer with the description. */
  readonly described: Reply
  readonly health: Reply
  readonly places: Places
  readonly belongings: Belongings
  readonly verdicts: Verdicts
  /** Milliseconds that a check waits for the agent. */
  readonly patience: number
  /**
   * The local listener of webhook deliveries, and its public address; null when none can arrive.
   */
  readonly webhook: { readonly receiver: Receiver; readonly url: string } | null
  /**
   * The stream of the whole organization, open during the run; null when it could not be opened.
   */
  readonly feed: Feed | null
}

/** The check that a trial runs: its title, and the ids of its rules. */
export interface Subject {
  readonly title: string
  readonly ids: readonly string[]
}

/**
 * The tools of a check: it sends requests to the deployment, and records the result for each rule.
 */
export class Trial {
  readonly ground: Ground
  readonly #check: Subject
  /** Sessions of the check. */
  readonly #sessions: string[] = []

  constructor(ground: Ground, check: Subject) {
    this.ground = ground
    this.#check = check
  }

  get deployment(): Deployment {
    return this.ground.deployment
  }

  get places(): Places {
    return this.ground.places
  }

  get(path: string, query: Record<string, string> = {}): Promise<Reply> {
    return this.deployment.call('GET', path, { query })
  }

  /**
   * @throws {Stuck} also when there is no free session slot: this is no fault of the deployment.
   */
  async post(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> {
    const reply = await this.deployment.call('POST', path, { body, headers })
    if (codeOf(reply) === 'project_limit_exceeded')
      throw new Stuck('the organization has no free session slot')
    if (path === '/v1/sessions' && reply.status < 300) this.#sessions.push(textAt(reply.json, 'id'))
    return reply
  }

  /** Records for the rules in `ids` whether they hold. */
  expect(ids: string, reply: Reply | null, expected: string, holds: boolean, seen?: unknown): boolean {
    for (const id of this.#own(ids)) {
      if (holds) this.ground.verdicts.hold(id, this.#check.title)
      else this.ground.verdicts.differ(id, this.#check.title, expected, said(reply, seen), reply)
    }
    return holds
  }

  /** Expects the value at `path` of the answer to be of this kind. */
  is(ids: string, reply: Reply, path: string, kind: Kind): boolean {
    return this.value(ids, reply, path, at(reply.json, path), kind)
  }

  /** Expects a value that was taken from an answer to be of this kind. */
  value(ids: string, reply: Reply | null, name: string, value: unknown, kind: Kind): boolean {
    const expected = `${name} is ${kind.name}`
    return this.expect(ids, reply, expected, kind.fits(value), `${name}: ${written(value)}`)
  }

  /** Expects several fields of one object. Each entry of `fields` has a path, ids of rules and a kind. */
  shape(reply: Reply | null, thing: unknown, fields: readonly (readonly [string, string, Kind])[]): void {
    for (const [path, ids, kind] of fields) this.value(ids, reply, path, at(thing, path), kind)
  }

  status(ids: string, reply: Reply, ...statuses: number[]): boolean {
    return this.expect(ids, reply, `status ${statuses.join(' or ')}`, statuses.includes(reply.status))
  }

  /** Expects a refusal with this status and code. Status null: any status from 400 on. */
  refused(ids: string, reply: Reply, status: number | null, code: string): boolean {
    const right = status === null ? reply.status >= 400 : reply.status === status
    return this.expect(ids, reply, `${status ?? 'a refusal'} ${code}`, right && codeOf(reply) === code)
  }

  /** Expects the refusal to contain every one of `words`. */
  mentions(ids: string, reply: Reply, ...words: string[]): boolean {
    const message = messageOf(reply).toLowerCase()
    const untold = words.filter((word) => !message.includes(word.toLowerCase()))
    return this.expect(ids, reply, `a message that contains ${words.join(', ')}`, untold.length === 0)
  }

  /** Expects the refusal to suggest `word`, the nearest name, besides a list of all names. */
  suggests(ids: string, reply: Reply, word: string): boolean {
    const times = messageOf(reply)
      .split(/[^\w-]+/)
      .filter((one) => one === word).length
    return this.expect(ids, reply, `a message that names ${word}, and lists the accepted names`, times >= 2)
  }

  /** Records how the deployment behaves where the interface leaves a detail open. */
  note(ids: string, text: string): void {
    for (const id of this.#own(ids)) this.ground.verdicts.describe(id, this.#check.title, text)
  }

  leave(ids: string, why: string): void {
    for (const id of this.#own(ids)) this.ground.verdicts.leave(id, this.#check.title, why)
  }

  /**
   * Creates a session with the run's mark and returns the answer. @throws {Stuck} when it is
   * refused.
   */
  async create(body: JsonObject = {}): Promise<Reply> {
    const reply = await this.post('/v1/sessions', this.marked(body))
    if (reply.status >= 300) throw new Stuck(`no session could be created: ${describeReply(reply)}`)
    return reply
  }

  /** The id of a new session. @throws {Stuck} */
  async session(body: JsonObject = {}): Promise<string> {
    return textAt((await this.create(body)).json, 'id')
  }

  /** The body of a new session, with the mark of the run added. */
  marked(body: JsonObject): JsonObject {
    const { belongings } = this.ground
    const metadata = isObject(body['metadata']) ? body['metadata'] : {}
    return { title: 'conform', ...body, metadata: { ...metadata, conform: belongings.mark } }
  }

  async remove(sessionId: string): Promise<Reply> {
    return this.deployment.call('DELETE', `/v1/sessions/${sessionId}`)
  }

  /** Repeats the request until `fits` accepts the answer, at most `ms`. Returns the last answer in any case. */
  async until(path: string, fits: (reply: Reply) => boolean, ms = this.ground.patience): Promise<Reply> {
    const limit = performance.now() + ms
    for (let wait = 20; ; wait = Math.min(wait * 2, 1000)) {
      const reply = await this.get(path)
      if (fits(reply) || performance.now() > limit) return reply
      await this.deployment.pause(wait)
    }
  }

  /** Removes the remaining sessions of the check, so that they use no slot that others need. */
  async tidy(): Promise<void> {
    const held = this.#sessions.filter((id) => this.ground.belongings.holds(id))
    await Promise.all(held.map((id) => this.remove(id).catch(later)))
  }

  #own(ids: string): string[] {
    const list = idsOf(ids)
    const stray = list.find((id) => !this.#check.ids.includes(id))
    if (stray !== undefined) throw new Error(`the check "${this.#check.title}" does not name ${stray}`)
    return list
  }
}

/** If a removal fails, it is tried again at the end of the run. */
function later(): void {}

function said(reply: Reply | null, seen: unknown): string {
  if (seen !== undefined) return typeof seen === 'string' ? seen : written(seen)
  return reply === null ? 'nothing' : describeReply(reply)
}
