import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { ConfigInput } from '../../src/index.ts'
import { NEXT_SECRET, SECRET } from '../support/app.ts'

/** Of the handlers: in vain so often, and a fact is dead. */
export const ATTEMPTS = 5
export const FIXED_ERROR = 'The tool could not complete this request.'
/** Function tools, with the seconds that a session gives each. */
export const TOOLS = { lookup: 20, charge: 20, throws: null } as const

export interface Places {
  /** What the program sees of the outside, each a base address. */
  service: string
  handlers: string
  tools: string
  webhooks: string
  webhookPort: number
  adminPort: number
  adminToken: string
  /** `sqlite:…` or `postgres://…` */
  store: string
  /** False: only reports of the stream and webhooks are read. */
  polls: boolean
}

/** Everything at once: three channels, two handlers of which one takes batches, tools of three kinds, secrets in files. */
function configurationOf(places: Places): ConfigInput {
  const retry = { attempts: ATTEMPTS, base: '20ms', max: '200ms' }
  const tool = { secret: SECRET, timeout: '1s', retry: { attempts: 3, base: '20ms', max: '200ms' } }
  return {
    service: { base_url: places.service, token_file: 'token' },
    store: { url: places.store },
    stream: { enabled: true, start_from: 'beginning' },
    webhooks: {
      enabled: true,
      listen: `127.0.0.1:${places.webhookPort}`,
      public_url: `${places.webhooks}/webhooks`,
    },
    polling: { enabled: places.polls, interval: '250ms', sweep: '2s' },
    handlers: [
      { name: 'app', url: `${places.handlers}/events/app`, secret: SECRET, timeout: '1s', retry },
      {
        name: 'books',
        url: `${places.handlers}/events/books`,
        secret_file: 'books-secret',
        format: 'cloudevents',
        batch: { max: 8, wait: '10ms' },
        events: ['turn.*', 'call.*', 'agent.*'],
        timeout: '1s',
        retry,
      },
    ],
    tools: [
      { name: 'lookup', url: `${places.tools}/tools/lookup`, ...tool },
      { name: 'charge', url: `${places.tools}/tools/charge`, ...tool, after_crash: 'fail' },
      { name: 'throws', module: './tools.mjs', retry: tool.retry },
    ],
    admin: { listen: `127.0.0.1:${places.adminPort}`, token: places.adminToken },
    log: { level: 'debug', format: 'json' },
  }
}

/**
 * Writes the configuration and what it refers to into `folder`. `library`: the file that the tool's module imports.
 * @returns the names of the file and of the token's.
 */
export function writeConfiguration(
  folder: string,
  places: Places,
  more: { token: string; library: string; canary: string },
): string {
  const file = path.join(folder, 'sidecar.json')
  writeFileSync(file, JSON.stringify(configurationOf(places), null, 2))
  writeFileSync(path.join(folder, 'books-secret'), NEXT_SECRET)
  writeFileSync(path.join(folder, 'token'), more.token)
  writeFileSync(path.join(folder, 'tools.mjs'), throwing(more.library, more.canary))
  return file
}

/** A tool in the program's own process that throws a secret. */
function throwing(library: string, canary: string): string {
  return `import { defineHandlers, tool } from ${JSON.stringify(library)}

export default defineHandlers({
  tools: [
    tool({
      name: 'throws',
      description: 'Fails.',
      input: { type: 'object' },
      run: () => {
        throw new Error(${JSON.stringify(canary)})
      },
    }),
  ],
})
`
}
