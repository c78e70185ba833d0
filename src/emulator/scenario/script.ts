import { HELP } from './help.ts'
import { readLines } from './line.ts'
import type { Step } from '../step.ts'
import type { Scenario } from './schema.ts'
import { readStep } from './step.ts'

type Reply = NonNullable<Scenario['replies']>[number]

/** The steps of the agent for one message. */
export interface Script {
  steps: Step[]
  /** The subagent that takes the turn; null: the agent itself. */
  subagent: string | null
}

/**
 * The first matching reply; else, for `help`, the explanation of the line language; else the
 * message's own lines.
 */
export function scriptFor(scenario: Scenario, text: string, instructions: string): Script {
  const reply = (scenario.replies ?? []).find((candidate) => fits(candidate, text, instructions))
  if (reply !== undefined) return { steps: reply.steps.map(readStep), subagent: reply.subagent ?? null }
  const steps = text.trim().toLowerCase() === 'help' ? [{ do: 'say' as const, text: HELP }] : readLines(text)
  return { steps, subagent: null }
}

function fits({ when }: Reply, text: string, instructions: string): boolean {
  if (when === undefined) return true
  if (typeof when === 'string') return contains(text, when)
  const { pattern, instructions: phrase } = when
  if (pattern !== undefined && !new RegExp(pattern, 'u').test(text)) return false
  return phrase === undefined || contains(instructions, phrase)
}

function contains(text: string, phrase: string): boolean {
  return text.toLowerCase().includes(phrase.toLowerCase())
}
