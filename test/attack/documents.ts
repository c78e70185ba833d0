import type { Random } from '../../src/core/ports.ts'
import { startEmulator } from '../../src/emulator/index.ts'
import { discover } from '../../src/service/discovery.ts'
import { mutateValue } from './mutate.ts'

/** Descriptions that lie: discovery finds or does not find, and never a path that leads anywhere but to the service. */
export async function attackDocuments(count: number, random: Random): Promise<string> {
  const documents = await Promise.all(['a', 'b'].map((details) => documentOf(details as 'a' | 'b')))
  const headers = new Headers()
  let found = 0
  let missing = 0
  for (let index = 0; index < count; index++) {
    const document = mutateValue(documents[index % documents.length], random)
    const { routes, idempotencyHeader } = discover(document)
    for (const [name, route] of Object.entries(routes)) {
      if (!route.found) {
        missing++
        continue
      }
      found++
      const { origin } = new URL(`http://service.example${route.path}`)
      if (!route.path.startsWith('/') || origin !== 'http://service.example')
        throw new Error(`${name} leads to ${route.path}`)
    }
    // A name that no header can have throws here.
    if (idempotencyHeader !== null) headers.set(idempotencyHeader.name, 'x')
  }
  return `${found} routes found, ${missing} not`
}

async function documentOf(openDetails: 'a' | 'b'): Promise<unknown> {
  const emulator = await startEmulator({ openDetails })
  try {
    return await (await fetch(`${emulator.baseUrl}/v1/openapi.json`)).json()
  } finally {
    await emulator.close()
  }
}
