import { Ajv, type ValidateFunction } from 'ajv'
import { request } from 'undici'
import { startEmulator } from '../../src/emulator/index.ts'

type Fields = Record<string, unknown>

interface Route {
  method: string
  path: RegExp
  responses: Record<string, { content?: Record<string, { schema?: unknown }> }>
}

/** The description of a profile, as what its service sends can be held against it. */
export class Description {
  readonly document: Fields
  readonly #ajv = new Ajv({ strict: false, allErrors: true, formats: { uuid: true } })
  readonly #routes: Route[]
  readonly #checks = new Map<string, ValidateFunction>()

  constructor(document: Fields) {
    this.document = document
    this.#ajv.addSchema({ $id: 'service', ...document })
    this.#routes = Object.entries(document['paths'] as Record<string, Record<string, Fields>>)
      .flatMap(([template, methods]) =>
        Object.entries(methods).map(([method, operation]) => ({
          method: method.toUpperCase(),
          path: new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
          responses: operation['responses'] as Route['responses'],
          wild: template.split('{').length,
        })),
      )
      // What is spelled out goes before what any id fits.
      .sort((one, other) => one.wild - other.wild)
  }

  /** What a reply has that the description does not promise; an empty list when all is as it says. */
  faultsOf(method: string, address: string, status: number, type: string, text: string): string[] {
    const [path = ''] = address.split('?')
    const route = this.#routes.find((one) => one.method === method && one.path.test(path))
    if (!path.startsWith('/v1') || status === 502) return []
    if (text === '' && method === 'HEAD') return []
    if (route === undefined) return this.fits('Error', JSON.parse(text))
    const described = route.responses[String(status)] ?? (status > 500 ? route.responses['500'] : undefined)
    if (described === undefined) return [`status ${status} is not described`]
    const content = described.content ?? {}
    const [kind = ''] = type.split(';')
    if (kind !== 'application/json') {
      return text === '' ||
        Object.keys(content).some((one) => one === kind || one === 'application/octet-stream')
        ? []
        : [`media type ${kind} is not described`]
    }
    return this.#faults(content[kind]?.schema ?? false, JSON.parse(text))
  }

  /** Checks a value against a named shape. */
  fits(name: string, value: unknown): string[] {
    return this.#faults({ $ref: `#/components/schemas/${name}` }, value)
  }

  #faults(schema: unknown, value: unknown): string[] {
    // References of the document are to itself; here they lead into it.
    const key = JSON.stringify(schema).replaceAll('"#/', '"service#/')
    let check = this.#checks.get(key)
    if (check === undefined) {
      check = this.#ajv.compile(JSON.parse(key) as Fields | boolean)
      this.#checks.set(key, check)
    }
    return check(value)
      ? []
      : (check.errors ?? []).map(({ instancePath, message }) => `${instancePath || 'it'} ${message}`)
  }
}

const descriptions = new Map<string, Promise<Description>>()

/** The description of a profile, read once. */
export function descriptionOf(profile: 'a' | 'b'): Promise<Description> {
  const known = descriptions.get(profile) ?? readDescription(profile)
  descriptions.set(profile, known)
  return known
}

async function readDescription(profile: 'a' | 'b'): Promise<Description> {
  const emulator = await startEmulator({ openDetails: profile })
  try {
    const response = await request(`${emulator.baseUrl}/v1/openapi.json`)
    return new Description((await response.body.json()) as Fields)
  } finally {
    await emulator.close()
  }
}
