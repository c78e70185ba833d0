import { ServiceError } from '../core/errors.ts'
import type { Actions } from './actions.ts'
import { NO_LIMIT, poll } from './poll.ts'
import type { CallAnswer } from './request.ts'
import type { RequiredAction, Session, Turn } from './resource.ts'
import type { Sessions } from './sessions.ts'
import { raced } from './signal.ts'
import type { Transport } from './transport.ts'
import type { Items, Turns, WaitOptions } from './turns.ts'

/** The context of a function beside its arguments. */
export interface FunctionCall {
  callId: string
  sessionId: string
  turnId: string | null
  /** Ends when the run does. */
  signal: AbortSignal
}

export interface RunOptions extends WaitOptions {
  /**
   * Functions by the names that the session declares. The return value is the output: a string unchanged, any other
   * value as JSON. If a function throws, the model reads `error`, never the thrown error.
   */
  functions?: Record<string, (args: unknown, call: FunctionCall) => unknown>
  /** Default: `The tool could not complete this request.` */
  error?: string
}

const ERROR = 'The tool could not complete this request.'
const INTERVAL = 500
/** When a run did not start, this many items are searched for the reason. */
const ITEMS = 20

interface Parts {
  transport: Transport
  sessions: Pick<Sessions, 'get' | 'send'>
  turns: Pick<Turns, 'list' | 'wait'>
  items: Items
  actions: Actions
}

/**
 * Sends a message once the session is idle, and waits until its turn is settled, answering function calls meanwhile. No
 * other program may drive the session. It reads only resources, so it misses nothing; its state is lost with the
 * process.
 * @throws {ServiceError} `run_not_started` when no turn was opened, `not_delivered` when an answer came too late.
 */
export function run(parts: Parts, sessionId: string, text: string, options: RunOptions = {}): Promise<Turn> {
  const { transport, sessions, turns, items } = parts
  const { functions = {}, error = ERROR, interval = INTERVAL, timeout = NO_LIMIT, ...limits } = options
  return transport.within('sendMessage', { timeout, ...limits }, async (operation) => {
    const { signal } = operation
    const newest = async (limit: number): Promise<Turn[]> =>
      (await turns.list(sessionId, { limit }, { signal }).page()).data
    const answerer = new Answerer(parts, sessionId, { functions, error, signal })
    /** The session if it is idle; null while it has something under way. */
    const idle = async (hurry: () => void): Promise<Session | null> => {
      const session = await sessions.get(sessionId, { signal })
      if (await answerer.answer(session.required_actions)) hurry()
      else if (session.status === 'idle' || session.status === 'failed') return session
      return null
    }
    await poll(transport, operation, interval, idle)
    const [before] = await newest(1)
    const [lastItem] = (await items.list(sessionId, { limit: 1 }, { signal }).page()).data
    const { queued, position } = await sessions.send(sessionId, text, { signal })
    const expected = queued ? (position ?? 1) : 1
    const turn = await poll(transport, operation, interval, async (hurry) => {
      const session = await idle(hurry)
      if (session === null) return null
      const fresh = newerThan(before?.id, await newest(expected + 1))
      // No message was sent after ours, so the newest turn is the turn of our message.
      if (fresh.length >= expected) return fresh[0] ?? null
      if (session.status !== 'failed' || fresh.length > 0) return null
      // The session may still be failed from an earlier turn. A run that could not start leaves an item with the
      // reason.
      const { data } = await items.list(sessionId, { limit: ITEMS }, { signal }).page()
      const reason = newerThan(lastItem?.id, data).find(({ detail }) => detail.event === 'agent.error')
      if (reason !== undefined) throw notStarted(reason.content)
      return null
    })
    return turns.wait(sessionId, turn.id, { interval, signal })
  })
}

type HostFunction = NonNullable<RunOptions['functions']>[string]

/**
 * Runs the function of each call only once, whatever becomes of its answer. The answer may be sent several times,
 * with one key.
 */
class Answerer {
  readonly #parts: Parts
  readonly #functions: NonNullable<RunOptions['functions']>
  readonly #error: string
  readonly #sessionId: string
  readonly #signal: AbortSignal
  readonly #calls = new Map<string, { answer: Promise<CallAnswer>; key: string }>()
  readonly #answered = new Set<string>()

  constructor(
    parts: Parts,
    sessionId: string,
    {
      functions,
      error,
      signal,
    }: Required<Pick<RunOptions, 'functions'>> & { error: string; signal: AbortSignal },
  ) {
    this.#parts = parts
    this.#functions = functions
    this.#error = error
    this.#sessionId = sessionId
    this.#signal = signal
  }

  /** @returns whether there was a call to answer. */
  async answer(required: readonly RequiredAction[]): Promise<boolean> {
    const asked = required.flatMap((action) => {
      const run = this.#answered.has(action.call_id) ? null : this.#functionOf(action)
      return run === null ? [] : [this.#answer(action, run)]
    })
    await Promise.all(asked)
    return asked.length > 0
  }

  #functionOf({ type, name }: RequiredAction): HostFunction | null {
    if (type !== 'function_call' || name === null || !Object.hasOwn(this.#functions, name)) return null
    return this.#functions[name] ?? null
  }

  async #answer(action: RequiredAction, run: HostFunction): Promise<void> {
    const { call_id: callId, name } = action
    const call = this.#calls.get(callId) ?? {
      answer: this.#run(action, run),
      key: this.#parts.transport.random.hex(16),
    }
    this.#calls.set(callId, call)
    const options = { signal: this.#signal, idempotencyKey: call.key }
    const answer = await raced(call.answer, this.#signal)
    const { outcome } = await this.#parts.actions.answer(this.#sessionId, callId, answer, options)
    this.#answered.add(callId)
    if (outcome !== 'not_delivered') return
    const message = `the sandbox no longer held the call of ${name}; send the message again`
    throw new ServiceError({ code: 'not_delivered', status: 0, message })
  }

  async #run(action: RequiredAction, run: HostFunction): Promise<CallAnswer> {
    const { call_id: callId, turn_id: turnId } = action
    try {
      const context = { callId, sessionId: this.#sessionId, turnId, signal: this.#signal }
      return { output: (await run(action.arguments, context)) ?? '(no output)' }
    } catch {
      return { error: this.#error }
    }
  }
}

/** `entries` has the newest first. */
function newerThan<T extends { id: string }>(id: string | undefined, entries: readonly T[]): readonly T[] {
  const at = entries.findIndex((entry) => entry.id === id)
  return at === -1 ? entries : entries.slice(0, at)
}

function notStarted(reason: string | null): ServiceError {
  const message = `no turn was opened: ${reason ?? 'the service gives no reason'}`
  return new ServiceError({ code: 'run_not_started', status: 0, message })
}
