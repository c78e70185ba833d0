import { randomBytes } from 'node:crypto'
import { invalid } from './refusal.ts'
import type { Tool } from './tool.ts'

/** A saved, named configuration. A session copies it at creation and never reads it again. */
export interface SavedAgent {
  readonly id: string
  readonly createdAt: number
  /** True: saved as an environment template, which has neither model nor instructions. */
  readonly template: boolean
  /** A slug that the client chose; not an identifier. */
  readonly name: string
  /** Null: whatever the connection runs. */
  readonly model: string | null
  /** Null: the organization's default connection. */
  readonly credentialId: string | null
  readonly instructions: string
  readonly tools: Tool[] | undefined
  readonly text: Record<string, unknown> | null
}

/** The organization's saved agents and environment templates, oldest first. */
export class SavedAgents {
  readonly #byId = new Map<string, SavedAgent>()
  readonly #apart: boolean

  /** `apart`: agents and templates have names and a ceiling of their own; else a template is an agent. */
  constructor(apart: boolean) {
    this.#apart = apart
  }

  /** The saved agents, without the templates that are kept apart. */
  agents(): SavedAgent[] {
    return this.all().filter((saved) => this.#isAgent(saved))
  }

  agent(id: string): SavedAgent | undefined {
    const saved = this.find(id)
    return saved !== undefined && this.#isAgent(saved) ? saved : undefined
  }

  all(): SavedAgent[] {
    return [...this.#byId.values()]
  }

  /** An agent or a template: a session may be made from either. */
  find(id: string): SavedAgent | undefined {
    return this.#byId.get(id)
  }

  /**
   * Saves under `name`. An existing name is replaced and keeps its id; fields that the new body
   * omits are removed. @throws {Refusal} 400 at the limit.
   */
  save(saved: Omit<SavedAgent, 'id' | 'createdAt'>, ceiling: number, now: number): SavedAgent {
    const alike = this.all().filter(({ template }) => !this.#apart || template === saved.template)
    const old = alike.find(({ name }) => name === saved.name)
    const noun = saved.template ? 'template' : 'agent'
    if (old === undefined && alike.length >= ceiling) {
      throw invalid(`${ceiling} ${noun}s are saved already; delete one, or save under a name in use`)
    }
    const made = {
      ...saved,
      id: old?.id ?? `${noun}_${randomBytes(10).toString('hex')}`,
      createdAt: old?.createdAt ?? now,
    }
    this.#byId.set(made.id, made)
    return made
  }

  restore(saved: SavedAgent): void {
    this.#byId.set(saved.id, saved)
  }

  remove(id: string): boolean {
    return this.#byId.delete(id)
  }

  #isAgent({ template }: SavedAgent): boolean {
    return !this.#apart || !template
  }
}
