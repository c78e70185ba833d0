import { NetworkFault, type NetworkFaultKind } from '../../src/std/errors.ts'
import { sendThrough } from '../support/ports.ts'
import type { Http, HttpReply, HttpRequest, HttpStream, HttpStreamRequest } from '../../src/std/ports.ts'
import type { Agenda } from './agenda.ts'
import type { Application } from './application.ts'
import type { Chance } from './chance.ts'
import type { Fault } from './faults.ts'
import { never, type Life } from './life.ts'
import { ChunkQueue } from './pipe.ts'
import type { EventStream } from './service/stream.ts'
import type { ServiceHost } from './service/host.ts'
import type { Passages, Sites } from './sites.ts'
import type { Watch } from './oracle/watch.ts'

export const SERVICE = 'https://service.test'
export const APP = 'http://app.test'

const BEFORE: readonly Fault[] = ['crash', 'refused', 'reset', 'lost', 'slow']
/**
 * The delay of a slow request, also when its sender no longer waits for the answer, and of a slow
 * reply, milliseconds.
 */
const SLOW = { request: [5000, 40_000], reply: 2000 }
const PACES = [
  [2, 2, 10, 60],
  [2, 2, 10, 60],
  [60, 400, 900],
]
const AFTER: readonly Fault[] = ['crash', 'reset_reply', 'lost_reply', 'slow', 'unreadable_reply']

export interface NetworkParts {
  agenda: Agenda
  chance: Chance
  sites: Sites
  host: ServiceHost
  events: EventStream
  app: Application
  watch: Watch
}

/** The network between the sidecar, the service and the application. */
export class Network {
  readonly #parts: NetworkParts
  /** What a way takes, milliseconds: on a slow network much is under way at once. */
  readonly #pace: readonly number[]
  /** No request gets through. */
  serviceUnreachable = false
  appUnreachable = false
  /** The session whose reads are not answered now. */
  hanging: string | null = null
  /** The session whose reads were not answered for a while; null: none. */
  hung: { id: string; inFirstLook: boolean } | null = null

  constructor(parts: NetworkParts) {
    this.#parts = parts
    this.#pace = parts.chance.pick(PACES)
  }

  /** The network as one life of the sidecar sees it. */
  portOf(life: Life): Http {
    const exchange = (request: HttpRequest): Promise<HttpReply> =>
      life.alive && !life.replaced ? this.#exchange(life, request) : never()
    return {
      exchange,
      send: sendThrough(exchange),
      open: (request) => (life.alive && !life.replaced ? this.#open(life, request) : never()),
      close: () => Promise.resolve(),
    }
  }

  #latency(): number {
    return 0.3 + this.#parts.chance.next() * this.#parts.chance.pick(this.#pace)
  }

  /** What the way of a request takes, milliseconds. */
  #wayOf(fault: Fault | null): number {
    return this.#latency() + (fault === 'slow' ? this.#parts.chance.pick(SLOW.request) : 0)
  }

  async #exchange(life: Life, request: HttpRequest): Promise<HttpReply> {
    const { agenda, host, app, watch } = this.#parts
    const sites = this.#sitesOf(life)
    const toService = request.url.startsWith(SERVICE)
    const asked = toService ? host.ask(request) : null
    const name = asked?.operation ?? (request.url.includes('/tools/') ? 'tool' : 'callback')
    const site = `http ${name}`
    watch.sent(life, name, request)
    const fault = sites.pass(site, 'before', BEFORE)
    if (fault === 'crash') return never()
    const { promise, resolve, reject } = Promise.withResolvers<HttpReply>()
    const sent = agenda.now
    let settled = false
    life.exchanges++
    const settle = (run: () => void): void => {
      if (settled || !life.alive) return
      settled = true
      life.exchanges--
      timeout.cancelled = true
      stopListening()
      watch.replied(life, name, request)
      run()
    }
    const fail = (kind: NetworkFaultKind): void => settle(() => reject(new NetworkFault(kind, kind)))
    const onAbort = (): void => fail('aborted')
    const stopListening = life.listen(request.signal, onAbort)
    const timeout = agenda.in(request.timeout, () => fail('timeout'), life)
    if (request.signal?.aborted === true) onAbort()
    const answer = (reply: HttpReply | NetworkFaultKind): void => {
      const way = sites.pass(site, 'after', AFTER)
      if (way === 'crash' || way === 'lost_reply') return
      const ms = this.#latency() + (way === 'slow' ? SLOW.reply : 0)
      agenda.in(
        ms,
        () => {
          if (way === 'reset_reply') return fail('reset')
          if (typeof reply === 'string') return fail(reply)
          if (way === 'unreadable_reply') {
            if (!settled && life.alive) watch.unread(life, name, request)
            return fail('unreadable')
          }
          settle(() => {
            if (asked === null) watch.answered(life, name, request, reply)
            else watch.served(life, asked, request, reply)
            if (toService) life.slowest = Math.max(life.slowest, agenda.now - sent)
            resolve(reply)
          })
        },
        life,
      )
    }
    const unreachable = toService ? this.serviceUnreachable : this.appUnreachable
    if (unreachable || fault === 'refused') agenda.in(this.#latency(), () => fail('unreachable'), life)
    else if (fault === 'reset') agenda.in(this.#latency(), () => fail('reset'), life)
    else if (fault !== 'lost' && !this.#hangs(request)) {
      // What is on its way arrives, also when the sender is no more.
      agenda.in(this.#wayOf(fault), () => {
        if (asked !== null) answer(host.serve(asked, request, { sent }))
        else if (toService) answer({ status: 404, headers: {}, body: '', truncated: false })
        else app.serve(name, request, life, answer)
      })
    }
    return await promise
  }

  #hangs({ method, url }: HttpRequest): boolean {
    return (
      this.hanging !== null && method === 'GET' && url.startsWith(SERVICE) && url.includes(`/${this.hanging}`)
    )
  }

  async #open(life: Life, request: HttpStreamRequest): Promise<HttpStream> {
    const { agenda, host, watch } = this.#parts
    const sites = this.#sitesOf(life)
    const asked = host.ask({ method: 'GET', url: request.url })
    if (asked === null) throw new NetworkFault('other', 'no such stream')
    watch.sent(life, 'stream', request)
    const cursor = request.headers['last-event-id'] ?? asked.query.get('last_event_id')
    if (cursor === null) watch.beginning.live(life)
    const fault = sites.pass('http stream', 'before', BEFORE)
    if (fault === 'crash') return never()
    const { promise, resolve, reject } = Promise.withResolvers<HttpStream>()
    const sent = agenda.now
    let settled = false
    life.streams++
    let end: (how: 'clean' | NetworkFault) => void = () => undefined
    const close = (how: 'clean' | NetworkFault): void => {
      if (settled || !life.alive) return
      settled = true
      life.streams--
      stopListening()
      timeout.cancelled = true
      end(how)
      if (how !== 'clean') reject(how)
    }
    const onAbort = (): void => close(new NetworkFault('aborted', 'aborted by the caller'))
    const stopListening = life.listen(request.signal, onAbort)
    const timeout = agenda.in(request.timeout, () => close(new NetworkFault('timeout', 'no answer')), life)
    if (this.serviceUnreachable || fault === 'refused' || fault === 'reset') {
      agenda.in(
        this.#latency(),
        () => close(new NetworkFault(fault === 'reset' ? 'reset' : 'unreachable', 'x')),
        life,
      )
    } else if (fault !== 'lost') {
      agenda.in(this.#wayOf(fault), () => {
        // A former leader's open may have been under way for long.
        const leads = life.face?.leads ?? true
        const reply = host.serve(asked, request, { sent, lives: life.alive && leads && !settled })
        if (settled || !life.alive) return
        // What happens from now on is in the stream, however late its head arrives; nothing arrives before it.
        let headed = false
        const head = (): void => {
          if (headed || settled || sites.crashes('http stream', 'after')) return
          headed = true
          timeout.cancelled = true
          watch.served(life, asked, request, reply)
          if (cursor === null && reply.status === 200) watch.beginning.live(life)
          life.slowest = Math.max(life.slowest, agenda.now - sent)
          resolve(stream)
        }
        const { stream, ended } = this.#connect(life, cursor, reply, head, close)
        end = ended
        agenda.in(this.#latency(), head, life)
      })
    }
    return await promise
  }

  #connect(
    life: Life,
    cursor: string | null,
    reply: HttpReply,
    head: () => void,
    close: (how: 'clean' | NetworkFault) => void,
  ): { stream: HttpStream; ended: (how: 'clean' | NetworkFault) => void } {
    const { agenda, events } = this.#parts
    const queue = new ChunkQueue(() => close('clean'))
    const { status } = reply
    if (status !== 200) {
      queue.push(Buffer.from(reply.body))
      queue.end('clean')
      return { stream: { status, headers: reply.headers, chunks: queue }, ended: () => undefined }
    }
    let arrives = agenda.now
    const arriving = (run: () => void): void => {
      // Bytes keep their order.
      arrives = Math.max(arrives + 0.001, agenda.now + this.#latency())
      agenda.in(arrives - agenda.now, run, life)
    }
    // What is written while it is on its way arrives together, and TCP knows no frames.
    let wire = ''
    const arrive = (): void => {
      head()
      const size = this.#parts.chance.is(0.1) ? this.#parts.chance.int(1, wire.length + 1) : wire.length
      const piece = wire.slice(0, size)
      wire = wire.slice(size)
      if (piece !== '') this.#arrive(life, queue, Buffer.from(piece))
      if (wire !== '') arriving(arrive)
    }
    let leave = (): void => undefined
    leave = events.open(cursor, {
      push: (text) => {
        if (!life.alive) leave()
        wire += text
        arriving(arrive)
      },
      gone: () => !life.alive,
      end: (clean) =>
        arriving(() => {
          head()
          if (wire !== '') this.#arrive(life, queue, Buffer.from(wire))
          wire = ''
          close(clean ? 'clean' : new NetworkFault('reset', 'reset'))
        }),
    })
    return {
      stream: { status, headers: { ...reply.headers, 'content-type': 'text/event-stream' }, chunks: queue },
      ended: (how) => {
        leave()
        queue.end(how)
      },
    }
  }

  #arrive(life: Life, queue: ChunkQueue, piece: Buffer): void {
    const sites = this.#sitesOf(life)
    if (sites.crashes('stream chunk', 'before')) return
    queue.push(piece)
    sites.crashes('stream chunk', 'after')
  }

  #sitesOf(life: Life): Passages {
    return life.sites ?? this.#parts.sites
  }

  /** Connections that are open break. */
  partition(): void {
    this.serviceUnreachable = true
    this.#parts.events.breakAll()
  }
}
