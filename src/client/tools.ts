import type { ActOptions, CallOptions, TextInput, ToolInput } from './request.ts'
import { readPublication } from './reply.ts'
import type { Publication } from './reply.ts'
import { readSessionTools } from './resource.ts'
import type { SessionTools } from './resource.ts'
import type { Transport } from './transport.ts'

export interface SessionToolsApi {
  get(sessionId: string, options?: CallOptions): Promise<SessionTools>
  /** Replaces the whole list, and restarts the session's bridge: until it is back, `files.write` waits. */
  replace(
    sessionId: string,
    change: { tools: ToolInput[]; text?: TextInput },
    options?: CallOptions,
  ): Promise<SessionTools>
}

export function toolsOf(transport: Transport): SessionToolsApi {
  return {
    get: (session, options) =>
      transport.call('readTools', { ids: { session } }, options, readSessionTools, 'the tools of a session'),
    replace: (session, change, options) =>
      transport.call(
        'replaceTools',
        { ids: { session }, body: () => change, repeatable: true },
        options,
        readSessionTools,
        'the tools of a session',
      ),
  }
}

export interface Previews {
  /** Publishes a port of the sandbox at a public address. */
  publish(sessionId: string, preview?: { port?: number }, options?: ActOptions): Promise<Publication>
  unpublish(sessionId: string, options?: CallOptions): Promise<Publication>
}

export function previewsOf(transport: Transport): Previews {
  return {
    publish: (session, { port } = {}, options) =>
      transport.call(
        'publishPreview',
        {
          ids: { session },
          body: () => (port === undefined ? {} : { [transport.found.portField ?? 'port']: port }),
          act: options ?? true,
        },
        options,
        readPublication,
        'a published preview',
      ),
    unpublish: (session, options) =>
      transport.call(
        'unpublishPreview',
        { ids: { session }, repeatable: true },
        options,
        readPublication,
        'a preview',
      ),
  }
}
