import type { Log } from '../../std/ports.ts'
import { createListener, type Address, type Listener } from './listener.ts'
import { connectionProblem, pathOf, Problem } from './problem.ts'
import { createRefuse, SECURITY } from './refusal.ts'

const TIMES = { headers: 5_000, request: 15_000, idle: 60_000 }
const ignore = (): void => undefined

/**
 * The admin listener of a sidecar that waits until another one gives up their database. Kubernetes must not restart it, and
 * must not route requests to it: it is alive and not ready.
 */
export function createStandby(listen: Address, log: Log): Listener {
  const refuse = createRefuse(log)
  return createListener({
    listen,
    headers: 16 * 1024,
    times: TIMES,
    refusal: connectionProblem,
    connections: { limit: 100, onEvicted: ignore, onRefused: ignore },
    serve(request, response) {
      if (/^\/(livez|startupz)$/.test(pathOf(request.url ?? '')))
        response.writeHead(200, { ...SECURITY, 'content-type': 'text/plain; charset=utf-8' }).end('ok\n')
      else refuse(new Problem('not_ready', 'standby: another sidecar holds the store'), request, response)
    },
  })
}
