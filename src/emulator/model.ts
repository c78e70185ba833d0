import { randomBytes } from 'node:crypto'
import { invalid } from './refusal.ts'

export interface Connector {
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

export interface Credential {
  readonly id: string
  readonly model: string
  readonly label: string
  readonly connector: string
  readonly key: string
  isDefault: boolean
  readonly createdAt: number
}

/** The organization's model connections; one to the `demo` model is there from the start. */
export class Models {
  readonly #credentials: Credential[]

  constructor(now: number) {
    this.#credentials = [
      {
        id: `mcred_${randomBytes(8).toString('hex')}`,
        model: 'demo',
        label: 'Demo',
        connector: 'demo',
        key: 'demo-key-0000',
        isDefault: true,
        createdAt: now,
      },
    ]
  }

  all(): readonly Credential[] {
    return this.#credentials
  }

  /**
   * The connection that a session asking for these runs on.
   * @throws {Refusal} 400 that names the id or the model that is not the caller's.
   */
  choose(model: string | undefined, credentialId: string | null | undefined): Credential {
    if (credentialId !== undefined && credentialId !== null) {
      const named = this.#credentials.find((candidate) => candidate.id === credentialId)
      if (named === undefined) {
        throw invalid(
          `agent.model_credential_id ${JSON.stringify(credentialId)} is not a connection of yours`,
        )
      }
      if (model !== undefined && model !== named.model) {
        throw invalid(
          `agent.model ${JSON.stringify(model)} is not the model that ${JSON.stringify(credentialId)} runs, which is ${JSON.stringify(named.model)}`,
        )
      }
      return named
    }
    const fallback = this.#credentials.find((candidate) => candidate.isDefault)
    const chosen =
      model === undefined ? fallback : this.#credentials.find((candidate) => candidate.model === model)
    if (chosen !== undefined) return chosen
    if (model === undefined)
      throw invalid('no model is connected; connect one with POST /v1/model-credentials')
    throw invalid(`agent.model ${JSON.stringify(model)} is not connected by this organization`)
  }
}
