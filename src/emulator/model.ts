import { randomBytes } from 'node:crypto'
import { invalid } from './refusal.ts'

interface Connector {
  readonly id: string
  readonly name: string
  readonly defaultModel: string
  readonly keyPrefix: string
}

/** The providers that the emulator pretends to integrate. */
export const CONNECTORS: readonly Connector[] = [
  { id: 'demo', name: 'Demo', defaultModel: 'demo', keyPrefix: 'demo-' },
  { id: 'northwind', name: 'Northwind', defaultModel: 'northwind-large', keyPrefix: 'nw-' },
  { id: 'contoso', name: 'Contoso', defaultModel: 'contoso-1', keyPrefix: 'sk-' },
  { id: 'fabrikam', name: 'Fabrikam', defaultModel: 'fabrikam-1', keyPrefix: 'sk-' },
]

/** The emulator calls no provider: the text of a key decides whether the provider rejects it. */
const REJECTED_KEY = /rejected/
const REJECTION = 'Incorrect API key provided.'

export interface Credential {
  readonly id: string
  readonly model: string
  readonly label: string
  readonly connector: string
  readonly key: string
  readonly baseUrl: string | undefined
  isDefault: boolean
}

/** One test of a key at its provider, with the requested model. */
export interface Probe {
  readonly connector: string
  readonly model: string
  readonly accepted: boolean
}

/** The requested connection. */
interface Connection {
  key: string
  provider?: string
  model?: string
  base_url?: string
  label?: string
  is_default?: boolean
}

/** The organization's model connections; a connection to the `demo` model exists at the start. */
export class Models {
  #credentials: Credential[] = []

  constructor() {
    this.#add({ key: 'demo-key-0000' }, CONNECTORS[0] as Connector)
  }

  /** Removes the connection that exists at the start. */
  clear(): void {
    this.#credentials = []
  }

  restore(credential: Credential): void {
    this.#credentials.push(credential)
  }

  all(): readonly Credential[] {
    return this.#credentials
  }

  /** The connection of sessions that name none. */
  fallback(): Credential | undefined {
    return this.#credentials.find((candidate) => candidate.isDefault)
  }

  /**
   * Connects a key, or returns its existing connection. `freeing` is the operation that a refusal
   * at the limit names; `probed` is called for the one trial before the connection is stored.
   * @throws {Refusal} 400 for an unknown or ambiguous vendor, a key that its provider rejects, or
   * the limit.
   */
  connect(
    asked: Connection,
    ceiling: number,
    freeing: { method: string; path: string },
    probed: (probe: Probe) => void,
  ): Credential {
    const connector = vendorOf(asked)
    const model = asked.model ?? connector.defaultModel
    const same = this.#credentials.find(
      (other) => other.key === asked.key && other.model === model && other.baseUrl === asked.base_url,
    )
    if (same !== undefined) return same
    if (this.#credentials.length >= ceiling) {
      throw invalid(`${ceiling} models are connected already; ${freeing.method} ${freeing.path} frees one`)
    }
    const accepted = !REJECTED_KEY.test(asked.key)
    probed({ connector: connector.id, model, accepted })
    if (!accepted) {
      throw invalid(`${connector.name} rejected the key for ${model}: ${JSON.stringify(REJECTION)}`)
    }
    return this.#add(asked, connector)
  }

  /** Removes a connection. If it was the default, another one becomes the default. */
  disconnect(id: string): Credential | undefined {
    const gone = this.#credentials.find((candidate) => candidate.id === id)
    this.#credentials = this.#credentials.filter((candidate) => candidate !== gone)
    const [next] = this.#credentials
    if (gone?.isDefault === true && next !== undefined) next.isDefault = true
    return gone
  }

  /**
   * Chooses the connection for a session that asks for this model and this connection.
   * @throws {Refusal} 400 that names the model or the connection that the organization does not have.
   */
  choose(model: string | undefined, credentialId: string | undefined): Credential {
    if (credentialId !== undefined) return this.#named(credentialId, model)
    const fallback = this.fallback()
    const runs = (candidate: Credential): boolean => model === undefined || candidate.model === model
    // If several connections run the model, the default comes first.
    const chosen = fallback !== undefined && runs(fallback) ? fallback : this.#credentials.find(runs)
    if (chosen !== undefined) return chosen
    if (model === undefined)
      throw invalid('no model is connected; connect one with POST /v1/model-credentials')
    throw invalid(`agent.model ${JSON.stringify(model)} is not connected by this organization`)
  }

  #named(id: string, model: string | undefined): Credential {
    const named = this.#credentials.find((candidate) => candidate.id === id)
    if (named === undefined) {
      throw invalid(`agent.model_credential_id ${JSON.stringify(id)} is not a connection of yours`)
    }
    if (model !== undefined && model !== named.model) {
      const [asked, runs] = [JSON.stringify(model), JSON.stringify(named.model)]
      throw invalid(`agent.model ${asked} does not match ${JSON.stringify(id)}, which runs ${runs}`)
    }
    return named
  }

  #add(asked: Connection, connector: Connector): Credential {
    const first = this.#credentials.length === 0
    const credential = {
      id: `mcred_${randomBytes(8).toString('hex')}`,
      model: asked.model ?? connector.defaultModel,
      label: asked.label ?? connector.name,
      connector: connector.id,
      key: asked.key,
      baseUrl: asked.base_url,
      isDefault: first || asked.is_default === true,
    }
    if (credential.isDefault) for (const other of this.#credentials) other.isDefault = false
    this.#credentials.push(credential)
    return credential
  }
}

function vendorOf({ key, provider }: Connection): Connector {
  if (provider !== undefined) {
    const named = CONNECTORS.find(({ id }) => id === provider)
    if (named === undefined)
      throw invalid(`provider ${JSON.stringify(provider)} is not in GET /v1/model-connectors`)
    return named
  }
  const fitting = CONNECTORS.filter(({ keyPrefix }) => key.startsWith(keyPrefix))
  const [only] = fitting
  if (only !== undefined && fitting.length === 1) return only
  throw invalid('the key does not identify its provider; give provider, an id from GET /v1/model-connectors')
}
