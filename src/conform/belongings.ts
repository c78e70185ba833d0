import { setTimeout as sleep } from 'node:timers/promises'
import type { Deployment } from './deployment.ts'
import { at, rowsOf, textAt } from './kind.ts'
import { fill, type Places } from './places.ts'
import type { Reply } from './reply.ts'

type Sort = 'session' | 'webhook' | 'agent' | 'credential'

/** Milliseconds between two attempts to remove a resource, and the number of attempts. */
const AGAIN_AFTER = 1000
const TRIES = 3

/**
 * The resources that the run created on the deployment, noted from the answers, and removed at its
 * end.
 */
export class Belongings {
  /** The mark in the metadata, names and addresses of all resources of the run. */
  readonly mark: string
  readonly #deployment: Deployment
  readonly #places: Places
  readonly #held = new Map<string, Sort>()
  /** The number of sessions that were created, and the most that existed at one time. */
  made = 0
  most = 0

  constructor(deployment: Deployment, places: Places, mark: string) {
    this.#deployment = deployment
    this.#places = places
    this.mark = mark
  }

  /** Notes the resource that an answer reports as created or removed. */
  see(reply: Reply): void {
    if (reply.status >= 300) return
    const { method, url } = reply.sent
    const path = new URL(url).pathname
    if (method === 'POST') this.#note(path, reply.json)
    else if (method === 'DELETE') this.#held.delete(decodeURIComponent(path.split('/').at(-1) ?? ''))
  }

  #note(path: string, json: unknown): void {
    if (path === '/v1/sessions') this.#add('session', textAt(json, 'id'))
    else if (path === '/v1/webhooks') this.#add('webhook', textAt(json, 'id'))
    else if (path === '/v1/model-credentials') this.#add('credential', textAt(json, 'id'))
    else if (path === this.#places.saveAgent?.path) this.#add('agent', textAt(json, 'id'))
    else if (path.endsWith('/fork')) {
      const origin = textAt(json, 'forked_from')
      const ids = [textAt(json, 'id'), textAt(json, 'session_id'), textAt(json, 'session.id')]
      this.#add('session', ids.find((id) => id !== '' && id !== origin) ?? '')
    }
  }

  #add(sort: Sort, id: string): void {
    if (id === '' || this.#held.has(id)) return
    this.#held.set(id, sort)
    if (sort !== 'session') return
    this.made++
    this.most = Math.max(this.most, [...this.#held.values()].filter((one) => one === 'session').length)
  }

  holds(id: string): boolean {
    return this.#held.has(id)
  }

  /**
   * Removes all noted resources. It also searches for others with the run's mark, because the answer to a creation
   * may have been lost.
   * @returns the resources that could not be removed, as `session ID`.
   */
  async release(): Promise<string[]> {
    if (this.made === 0 && this.#held.size === 0 && this.#deployment.requests === 0) return []
    for (let attempt = 0; attempt < TRIES; attempt++) {
      if (attempt > 0) await sleep(AGAIN_AFTER)
      await this.#sweep()
      await Promise.all([...this.#held].map(([id, sort]) => this.#remove(id, sort)))
      if (this.#held.size === 0) break
    }
    return [...this.#held].map(([id, sort]) => `${sort} ${id}`)
  }

  async #sweep(): Promise<void> {
    const sessions = await this.#read('/v1/sessions', { metadata: `conform:${this.mark}`, limit: '100' })
    for (const row of rowsOf(sessions)) {
      // A deployment that ignores the filter would return the sessions of others.
      if (at(row, 'metadata.conform') === this.mark) this.#add('session', textAt(row, 'id'))
    }
    for (const row of rowsOf(await this.#read('/v1/webhooks', { limit: '100' }))) {
      if (textAt(row, 'url').includes(this.mark)) this.#add('webhook', textAt(row, 'id'))
    }
  }

  async #read(path: string, query: Record<string, string>): Promise<unknown> {
    const reply = await this.#deployment.once('GET', path, { query }).catch(() => undefined)
    return reply?.json
  }

  async #remove(id: string, sort: Sort): Promise<void> {
    const { deleteAgent, disconnect } = this.#places
    const places = {
      session: ['DELETE', `/v1/sessions/${id}`],
      webhook: ['DELETE', `/v1/webhooks/${id}`],
      agent: ['DELETE', deleteAgent === null ? null : fill(deleteAgent, { agent: id })],
      credential: [disconnect?.method, disconnect === null ? null : fill(disconnect, { credential: id })],
    } as const
    const [method, path] = places[sort]
    if (method == null || path == null) return
    const reply = await this.#deployment.once(method, path).catch(() => undefined)
    if (reply !== undefined && (reply.status < 300 || reply.status === 404)) this.#held.delete(id)
  }
}
