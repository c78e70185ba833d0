import type { HandlerSpec } from '../core/handler.ts'
import type { Observer } from '../core/observer.ts'
import type { Http } from '../std/ports.ts'
import type { Tracer } from '../core/trace.ts'
import type { Store } from '../core/store.ts'
import type { HandlerRecord } from '../core/store-reader.ts'
import { createDispatcher, createWorker, type Dispatcher } from './deliver/dispatcher.ts'
import { createHttpTarget } from './deliver/targets/http.ts'
import { createModuleTarget } from './deliver/targets/module.ts'
import type { LanePorts } from './deliver/lane-runner.ts'
import { MemoryWindow } from './deliver/lane.ts'

/** A worker for each handler. `source`: the attribute of that name in CloudEvents. */
export function createHandlers(
  specs: readonly HandlerSpec[],
  source: string,
  ports: Omit<LanePorts, 'window'> & { http: Http; observer: Observer; tracer: Tracer },
): Dispatcher {
  const lanePorts = { ...ports, window: new MemoryWindow() }
  const workers = specs.map((spec) => {
    const target =
      spec.target.kind === 'http'
        ? createHttpTarget(spec, spec.target, ports, source)
        : createModuleTarget(spec, spec.target.handle, ports)
    return createWorker({ spec, target }, lanePorts)
  })
  return createDispatcher(workers, lanePorts)
}

/** Registers the handlers in the store: each fact that is committed from then on gets deliveries for them. */
export function registerHandlers(
  store: Pick<Store['settings'], 'registerHandlers'>,
  specs: readonly HandlerSpec[],
): Promise<HandlerRecord[]> {
  return store.registerHandlers(
    specs.map(({ name, events, ordered, batch }) => ({
      name,
      // A batch has facts of one session only, so that a batch that fails delays no other session.
      ordered: ordered || batch.max > 1,
      events,
    })),
  )
}
