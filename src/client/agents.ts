import { listOf } from './list.ts'
import type { List } from './list.ts'
import { remove } from './remove.ts'
import type { ActOptions, CallOptions, NewAgent, NewTemplate, PageQuery } from './request.ts'
import { readAgent, readProfile, readTemplate } from './resource.ts'
import type { Agent, EnvironmentProfile, EnvironmentTemplate } from './resource.ts'
import type { Transport } from './transport.ts'

export interface Agents {
  list(query?: PageQuery, options?: CallOptions): List<Agent>
  get(agentId: string, options?: CallOptions): Promise<Agent>
  /** If the name is in use, the whole agent is replaced and keeps its id. */
  save(agent: NewAgent, options?: ActOptions): Promise<Agent>
  delete(agentId: string, options?: CallOptions): Promise<void>
}

/** @deprecated by the service in favour of agents. */
export interface Templates {
  get(templateId: string, options?: CallOptions): Promise<EnvironmentTemplate>
  save(template: NewTemplate, options?: ActOptions): Promise<EnvironmentTemplate>
}

export interface Profiles {
  list(query?: PageQuery, options?: CallOptions): List<EnvironmentProfile>
}

export function agentsOf(transport: Transport): Agents {
  return {
    list: (query = {}, options) =>
      listOf(
        transport,
        { operation: 'listAgents', query: { ...query }, read: readAgent, what: 'an agent' },
        options,
      ),
    get: (agent, options) => transport.call('readAgent', { ids: { agent } }, options, readAgent, 'an agent'),
    save: (agent, options) =>
      transport.call(
        'saveAgent',
        { body: () => agent, act: options ?? true },
        options,
        readAgent,
        'an agent',
      ),
    delete: (agent, options) => remove(transport, 'deleteAgent', { agent }, options),
  }
}

export function templatesOf(transport: Transport): Templates {
  return {
    get: (template, options) =>
      transport.call('readTemplate', { ids: { template } }, options, readTemplate, 'a template'),
    save: (template, options) =>
      transport.call(
        'saveTemplate',
        { body: () => template, act: options ?? true },
        options,
        readTemplate,
        'a template',
      ),
  }
}

export function profilesOf(transport: Transport): Profiles {
  return {
    list: (query = {}, options) =>
      listOf(
        transport,
        { operation: 'listProfiles', query: { ...query }, read: readProfile, what: 'a profile' },
        options,
      ),
  }
}
