import { listOf } from './list.ts'
import type { List } from './list.ts'
import type { ActOptions, CallOptions, NewCredential, PageQuery } from './request.ts'
import { readConnector, readCredential, readDisconnection } from './resource.ts'
import type { Disconnection, ModelConnector, ModelCredential } from './resource.ts'
import type { Transport } from './transport.ts'

export interface Connectors {
  /** The providers that can be connected. */
  list(query?: PageQuery, options?: CallOptions): List<ModelConnector>
}

export interface Credentials {
  /** Ids, names and models. */
  list(query?: PageQuery, options?: CallOptions): List<ModelCredential>
  /** Connects a model with a key of its provider. Needs `credentials:write`. Existing sessions keep their connection. */
  connect(credential: NewCredential, options?: ActOptions): Promise<ModelCredential>
  /** Removes a connection; its sessions move to another one. */
  disconnect(credentialId: string, options?: CallOptions): Promise<Disconnection>
}

export function connectorsOf(transport: Transport): Connectors {
  return {
    list: (query = {}, options) =>
      listOf(
        transport,
        { operation: 'listConnectors', query: { ...query }, read: readConnector, what: 'a connector' },
        options,
      ),
  }
}

export function credentialsOf(transport: Transport): Credentials {
  return {
    list: (query = {}, options) =>
      listOf(
        transport,
        { operation: 'listCredentials', query: { ...query }, read: readCredential, what: 'a credential' },
        options,
      ),
    connect: (credential, options) =>
      transport.call(
        'connect',
        { body: () => credential, act: options ?? true },
        options,
        readCredential,
        'a credential',
      ),
    disconnect: (credential, options) =>
      transport.call(
        'disconnect',
        { ids: { credential } },
        options,
        readDisconnection,
        'the reply to a disconnection',
      ),
  }
}
