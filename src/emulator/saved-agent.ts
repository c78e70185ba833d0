import { randomBytes } from 'node:crypto'
import { invalid } from './refusal.ts'
import type { Tool } from './tool.ts'

/** A saved, named configuration. A session copies it at creation and never looks at it again. */
export interface SavedAgent {
  readonly id: string
  readonly createdAt: number
  /** A slug that the client chose; not an identifier. */
  readonly name: string
  readonly model: string
  /** Null: the organization's default connection. */
  readonly credentialId: string | null
  readonly instructions: string
  readonly tools: Tool[] | undefined
  readonly text: Record<string, unknown> | null
}

/** The organization's saved agents, oldest first. */
export class SavedAgents {
  readonly #byId = new Map<string, SavedAgent>()

  all(): SavedAgent[] {
    return [...this.#byId.values()]
  }

  find(id: string): SavedAgent | undefined {
    return this.#byId.get(id)
  }

  /**
   * Saves under `name`. A name in use is replaced in place and keeps its id; what the replacement leaves out is gone.
   * @throws {Refusal} 400 at the ceiling.
   */
  save(agent: Omit<SavedAgent, 'id' | 'createdAt'>, ceiling: number, now: number): SavedAgent {
    const old = this.all().find(({ name }) => name === agent.name)
    if (old === undefined && this.#byId.size >= ceiling) {
      throw invalid(`${ceiling} agents are saved already; delete one, or save under a name in use`)
    }
    const saved = {
      ...agent,
      id: old?.id ?? `agent_${randomBytes(10).toString('hex')}`,
      createdAt: old?.createdAt ?? now,
    }
    this.#byId.set(saved.id, saved)
    return saved
  }

  remove(id: string): boolean {
    return this.#byId.delete(id)
  }
}
