import { ActionRefused, type AdminActions } from './admin/actions.ts'
import { compilePatterns } from '../core/pattern.ts'
import type { Clock, Random } from '../std/ports.ts'
import type { Store } from '../core/store.ts'
import { sampleFact } from './deliver/sample.ts'
import type { Engine } from './engine.ts'
import { declaration, type Specs } from './specs.ts'

/** Implements the actions of the admin API on the store and the parts of this process. */
export function adminActions(
  store: Store,
  engine: Engine,
  specs: Pick<Specs, 'handlers' | 'tools'>,
  ports: { clock: Clock; random: Random; handlers: AdminActions['handlers'] },
): AdminActions {
  const known = (name: string): void => {
    if (engine.dispatcher.worker(name) === undefined) {
      throw new ActionRefused('not_found', `there is no handler ${name}`)
    }
  }
  /** A retry for all handlers may fail at the third one: the deliveries that are pending by then are sent nevertheless. */
  const thenReload = (count: Promise<{ count: number }>): Promise<{ count: number }> =>
    count.finally(() => engine.dispatcher.reload())

  return {
    async retryDelivery(id) {
      const delivery = await store.read.delivery(id)
      if (delivery !== null) known(delivery.handler)
      return await thenReload(store.operator.retry({ id }))
    },
    async retryDeliveries(selection) {
      if (selection.handler !== undefined) known(selection.handler)
      // A dead letter of a handler that was removed stays dead until a handler has that name again.
      const names =
        selection.handler === undefined ? specs.handlers.map(({ name }) => name) : [selection.handler]
      let count = 0
      const retryAll = async (): Promise<{ count: number }> => {
        for (const handler of names) count += (await store.operator.retry({ ...selection, handler })).count
        return { count }
      }
      return await thenReload(retryAll())
    },
    async replay({ handler, from }) {
      known(handler)
      return await thenReload(store.operator.replay(handler, from))
    },
    async pauseHandler(name) {
      known(name)
      const since = await store.settings.pauseHandler(name, 'paused by an operator')
      engine.dispatcher.worker(name)?.pause(since)
    },
    async resumeHandler(name) {
      known(name)
      await store.settings.pauseHandler(name, null)
      engine.dispatcher.worker(name)?.resume()
    },
    async testHandler(name, { type, data }) {
      known(name)
      const fact = sampleFact(type, data, ports)
      const trial = await engine.dispatcher.worker(name)?.test(fact)
      if (trial === undefined) throw new ActionRefused('not_found', `there is no handler ${name}`)
      const { events } = specs.handlers.find((handler) => handler.name === name) ?? { events: [] }
      return { id: fact.id, type, wanted: compilePatterns(events).wants(type), ...trial }
    },
    async answerCall(callId, answer) {
      const outcome = await engine.tools.answer(callId, answer)
      if (outcome === 'not_found') throw new ActionRefused('not_found', `there is no call ${callId}`)
      if (outcome === 'too_long') {
        throw new ActionRefused(
          'invalid_request',
          'the output is larger than the service accepts: 1 MiB as JSON',
        )
      }
      if (outcome === 'conflict')
        throw new ActionRefused('conflict', `call ${callId} does not wait for an answer`)
    },
    tools: () => declaration(specs.tools),
    handlerNames: () => specs.handlers.map(({ name }) => name),
    handlers: ports.handlers,
  }
}
