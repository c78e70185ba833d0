import type { Random } from '../../src/std/ports.ts'
import { startEmulator } from '../../src/emulator/index.ts'
import { discoverWhole } from '../../src/client/discovery/whole.ts'
import { otherDocument, plainDocument } from '../support/service/documents.ts'
import { mutatePlaces, mutateValue, pick, placesOf } from './mutate.ts'
import { Tally } from './tally.ts'

/** Descriptions that lie: discovery finds or does not find, and never a path that leads anywhere but to the service. */
export async function attackDocuments(count: number, random: Random): Promise<Tally> {
  const whole = await Promise.all(['a', 'b'].map((details) => documentOf(details as 'a' | 'b')))
  const sources = [plainDocument, otherDocument, plainDocument, otherDocument, ...whole].map((document) => ({
    document,
    places: placesOf(document),
  }))
  const headers = new Headers()
  const tally = new Tally()
  for (let index = 0; index < count; index++) {
    const { document, places } = pick(random, sources)
    const mutated =
      random.next() < 0.9 ? mutatePlaces(document, places, random) : mutateValue(document, random, 0.5)
    const { routes, idempotencyHeader } = discoverWhole(mutated)
    for (const [name, route] of Object.entries(routes)) {
      tally.note(route.found ? 'routes found' : 'routes not found')
      if (route.found && !leadsToService(route.path)) throw new Error(`${name} leads to ${route.path}`)
    }
    // A name that no header can have throws here.
    if (idempotencyHeader !== null) headers.set(idempotencyHeader.name, 'x')
  }
  return tally
}

const PLAIN = /^\/[\w{}./-]*$/

/** As a request would be sent. */
function leadsToService(path: string): boolean {
  if (PLAIN.test(path) && !path.startsWith('//')) return true
  return path.startsWith('/') && new URL(`http://service.example${path}`).origin === 'http://service.example'
}

async function documentOf(openDetails: 'a' | 'b'): Promise<unknown> {
  const emulator = await startEmulator({ openDetails })
  try {
    return await (await fetch(`${emulator.baseUrl}/v1/openapi.json`)).json()
  } finally {
    await emulator.close()
  }
}
