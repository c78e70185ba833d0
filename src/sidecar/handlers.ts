import type { HandlerSpec } from '../core/handler.ts'
import { compilePatterns } from '../core/pattern.ts'
import type { Observer } from '../core/observer.ts'
import type { Http } from '../std/ports.ts'
import type { Tracer } from '../core/trace.ts'
import { createDispatcher, pauseOf, type Dispatcher } from './deliver/dispatcher.ts'
import { createHttpTarget } from './deliver/targets/http.ts'
import { createModuleTarget } from './deliver/targets/module.ts'
import type { LanePorts } from './deliver/lane-runner.ts'
import { MemoryWindow } from './deliver/memory-window.ts'
import { createWorker } from './deliver/worker.ts'

/** Makes the handlers known to the store, and a worker for each. `source`: who we are, for CloudEvents. */
export async function openHandlers(
  specs: readonly HandlerSpec[],
  source: string,
  ports: Omit<LanePorts, 'window'> & { http: Http; observer: Observer; tracer: Tracer },
): Promise<Dispatcher> {
  const records = await ports.store.settings.registerHandlers(
    specs.map(({ name, events, ordered, batch }) => ({
      name,
      // A batch is of one session, so that a bad one delays no other session.
      ordered: ordered || batch.max > 1,
      wants: compilePatterns(events).wants,
    })),
  )
  const lanePorts = { ...ports, window: new MemoryWindow() }
  const workers = specs.map((spec) =>
    createWorker(
      {
        spec,
        target:
          spec.target.kind === 'http'
            ? createHttpTarget(spec, spec.target, ports, source)
            : createModuleTarget(spec, spec.target.handle, ports),
        paused: pauseOf(records, spec.name),
      },
      lanePorts,
    ),
  )
  return createDispatcher(workers, ports.acks)
}
