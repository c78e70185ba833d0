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

/** What all checks of a run share. */
export interface Ground {
  readonly deployment: Deployment
  readonly description: Description
  /** The answer that the description came in. */
  readonly described: Reply
  readonly health: Reply
  readonly places: Places
  readonly belongings: Belongings
  readonly verdicts: Verdicts
  /** Milliseconds that a check waits for the agent to do something. */
  readonly patience: number
  /** Where webhook deliveries arrive, and under which address; null when none can. */
  readonly webhook: { readonly receiver: Receiver; readonly url: string } | null
  /** The stream of the whole organization, open for the length of the run; null when it could not be opened. */
  readonly feed: Feed | null
}

/** The check that a trial runs: its title, and the rules that it names. */
export interface Subject {
  readonly title: string
  readonly ids: readonly string[]
}

/** The hands of a check: it asks the deployment, and says of each rule what it saw. */
export class Trial {
  readonly ground: Ground
  readonly #check: Subject
  /** Sessions that the check made. */
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

  /** @throws {Stuck} also when there is no place for another session: that is no fault of the deployment. */
  async post(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> {
    const reply = await this.deployment.call('POST', path, { body, headers })
    if (codeOf(reply) === 'project_limit_exceeded')
      throw new Stuck('the organization has no place for a session')
    if (path === '/v1/sessions' && reply.status < 300) this.#sessions.push(textAt(reply.json, 'id'))
    return reply
  }

  /** The rules in `ids` hold exactly when `holds`. */
  expect(ids: string, reply: Reply | null, expected: string, holds: boolean, seen?: unknown): boolean {
    for (const id of this.#own(ids)) {
      if (holds) this.ground.verdicts.hold(id, this.#check.title)
      else this.ground.verdicts.differ(id, this.#check.title, expected, said(reply, seen), reply)
    }
    return holds
  }

  /** The value at `path` of the answer is of this kind. */
  is(ids: string, reply: Reply, path: string, kind: Kind): boolean {
    return this.value(ids, reply, path, at(reply.json, path), kind)
  }

  /** A value that was taken from somewhere inside an answer. */
  value(ids: string, reply: Reply | null, name: string, value: unknown, kind: Kind): boolean {
    const expected = `${name} is ${kind.name}`
    return this.expect(ids, reply, expected, kind.fits(value), `${name}: ${written(value)}`)
  }

  /** Many fields of one thing: path, ids, kind. */
  shape(reply: Reply | null, thing: unknown, fields: readonly (readonly [string, string, Kind])[]): void {
    for (const [path, ids, kind] of fields) this.value(ids, reply, path, at(thing, path), kind)
  }

  status(ids: string, reply: Reply, ...statuses: number[]): boolean {
    return this.expect(ids, reply, `status ${statuses.join(' or ')}`, statuses.includes(reply.status))
  }

  /** The request is refused so; a null status is an open one. */
  refused(ids: string, reply: Reply, status: number | null, code: string): boolean {
    const right = status === null ? reply.status >= 400 : reply.status === status
    return this.expect(ids, reply, `${status ?? 'a refusal'} ${code}`, right && codeOf(reply) === code)
  }

  /** The refusal speaks of every one of `words`. */
  tells(ids: string, reply: Reply, ...words: string[]): boolean {
    const message = messageOf(reply).toLowerCase()
    const untold = words.filter((word) => !message.includes(word.toLowerCase()))
    return this.expect(ids, reply, `a message that speaks of ${words.join(', ')}`, untold.length === 0)
  }

  /** The refusal names the nearest of the names apart from listing them all. */
  suggests(ids: string, reply: Reply, word: string): boolean {
    const times = messageOf(reply)
      .split(/[^\w-]+/)
      .filter((one) => one === word).length
    return this.expect(ids, reply, `a message that names ${word}, and lists the accepted names`, times >= 2)
  }

  /** What the deployment does where the interface says nothing. */
  note(ids: string, text: string): void {
    for (const id of this.#own(ids)) this.ground.verdicts.describe(id, this.#check.title, text)
  }

  leave(ids: string, why: string): void {
    for (const id of this.#own(ids)) this.ground.verdicts.leave(id, this.#check.title, why)
  }

  /** Makes a session with the run's mark and gives the answer. @throws {Stuck} when it is not made. */
  async create(body: JsonObject = {}): Promise<Reply> {
    const reply = await this.post('/v1/sessions', this.marked(body))
    if (reply.status >= 300) throw new Stuck(`no session could be made: ${describeReply(reply)}`)
    return reply
  }

  /** The id of a new session. @throws {Stuck} */
  async session(body: JsonObject = {}): Promise<string> {
    return textAt((await this.create(body)).json, 'id')
  }

  /** A body of a new session that carries the mark. */
  marked(body: JsonObject): JsonObject {
    const { belongings } = this.ground
    const metadata = isObject(body['metadata']) ? body['metadata'] : {}
    return { title: 'conform', ...body, metadata: { ...metadata, conform: belongings.mark } }
  }

  async remove(sessionId: string): Promise<Reply> {
    return this.deployment.call('DELETE', `/v1/sessions/${sessionId}`)
  }

  /** Asks again until `fits`; gives the last answer either way. */
  async until(path: string, fits: (reply: Reply) => boolean, ms = this.ground.patience): Promise<Reply> {
    const limit = performance.now() + ms
    for (let wait = 20; ; wait = Math.min(wait * 2, 1000)) {
      const reply = await this.get(path)
      if (fits(reply) || performance.now() > limit) return reply
      await this.deployment.pause(wait)
    }
  }

  /** Removes the sessions that the check could not remove itself, so that they take no place from the others. */
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

/** What does not go now is tried again at the end of the run. */
function later(): void {}

function said(reply: Reply | null, seen: unknown): string {
  if (seen !== undefined) return typeof seen === 'string' ? seen : written(seen)
  return reply === null ? 'nothing' : describeReply(reply)
}
