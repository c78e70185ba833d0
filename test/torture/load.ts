import { setTimeout as pause } from 'node:timers/promises'
import type { LedgerTurn } from '../../src/emulator/index.ts'
import type { Chance } from '../simulation/chance.ts'
import { TOOLS } from './configuration.ts'
import type { Service } from './service.ts'
import type { Tally } from './tally.ts'

const SCRIPTS: readonly (readonly string[])[] = [
  ['say Hello', 'write outputs/a.txt x'],
  ['call lookup {"n":1}', 'say {{last}}'],
  ['call lookup {"n":2} & call charge {"n":3}', 'wait 20ms', 'call lookup {}'],
  ['call charge {"n":4}', 'say {{last}}'],
  ['call throws {}', 'say {{last}}'],
  ['wait 30ms', 'fail out of disk'],
  ['say one', 'shell ls', 'think Hmm', 'say two'],
  ['burst 40 200'],
  ['approve shell rm -rf build', 'say done'],
  ['ask Which colour?', 'say {{last}}'],
  ['collect 300ms', 'write outputs/b.txt y', 'say later'],
  ['wait 500ms', 'call lookup {"n":5}'],
  ['cannot start today'],
]

/** Sessions that are open at one time. */
const SESSIONS = 8

/** People who use the service: they make sessions, send messages, cancel, delete, approve, and care for nothing else. */
export class Load {
  readonly #service: Service
  readonly #chance: Chance
  readonly #tally: Tally
  readonly #sessions: string[] = []
  #running = false
  #done: Promise<void> = Promise.resolve()

  constructor(service: Service, chance: Chance, tally: Tally) {
    this.#service = service
    this.#chance = chance
    this.#tally = tally
  }

  /** `wait`: milliseconds between two acts, at the most. */
  start(wait: number): void {
    this.#running = true
    this.#done = this.#run(wait)
  }

  async stop(): Promise<void> {
    this.#running = false
    await this.#done
  }

  async #run(wait: number): Promise<void> {
    while (this.#running) {
      // The service is killed, limits and fails: its client tries something else.
      await this.#act().catch(() => this.#tally.add('load refused'))
      await pause(this.#chance.int(0, wait))
    }
  }

  async #act(): Promise<void> {
    if (this.#sessions.length < SESSIONS) this.#sessions.push(await this.#service.create(TOOLS))
    const kind = this.#chance.int(0, 99)
    const session = this.#chance.pick(this.#sessions)
    if (kind < 2) {
      this.#sessions.splice(this.#sessions.indexOf(session), 1)
      return await this.#service.remove(session)
    }
    if (kind < 8) return await this.#cancelOne()
    if (kind < 20) return await this.resolveAll(0.5)
    await this.#service.send(session, this.#chance.pick(SCRIPTS).join('\n'))
    this.#tally.add('load messages')
  }

  async #cancelOne(): Promise<void> {
    const [turn] = await this.#working()
    if (turn !== undefined) await this.#service.cancel(turn.session_id, turn.id)
  }

  /** A turn whose answer was lost may wait for ever, and those behind it too: people give it up. */
  async cancelAll(): Promise<void> {
    for (const { session_id, id } of await this.#working()) await this.#service.cancel(session_id, id)
  }

  async #working(): Promise<LedgerTurn[]> {
    const { turns } = await this.#service.ledger()
    return turns.filter(({ status }) => status === 'working')
  }

  /** Gives people's answers to the share `p` of what waits for a person. */
  async resolveAll(p: number): Promise<void> {
    const { actions } = await this.#service.ledger()
    for (const { call_id: id, type, resolved_at: at } of actions) {
      if (at !== null || type === 'function_call' || !this.#chance.is(p)) continue
      const verdict = type === 'approval' ? { approved: this.#chance.is(0.7) } : { answer: 'blue' }
      await this.#service.resolve(id, verdict)
    }
  }
}
