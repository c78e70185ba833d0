import type { Random } from '../../src/std/ports.ts'
import { attackAdmin, attackRelay } from './admin.ts'
import { attackAnswers } from './answers.ts'
import { attackConfiguration } from './configuration.ts'
import { attackCosts } from './cost/readers.ts'
import { attackDatabase } from './database.ts'
import { attackDocuments } from './documents.ts'
import { attackFrames } from './frames.ts'
import { attackReplies } from './replies.ts'
import { attackScenarios } from './scenarios.ts'
import { attackSplits } from './splits.ts'
import type { Tally } from './tally.ts'
import { attackTools } from './tools.ts'
import { attackWebhooks } from './webhooks.ts'

/** A way in for what others wrote. */
export interface Door {
  /** @throws on the first input that does harm. */
  attack: (count: number, random: Random) => Promise<Tally>
  /** The default number of inputs: some minutes of one core for all doors together. */
  usual: number
}

export const DOORS: Readonly<Record<string, Door>> = {
  webhooks: { attack: attackWebhooks, usual: 1_000_000 },
  frames: { attack: attackFrames, usual: 100_000 },
  splits: { attack: attackSplits, usual: 100_000 },
  replies: { attack: attackReplies, usual: 100_000 },
  answers: { attack: attackAnswers, usual: 100_000 },
  tools: { attack: attackTools, usual: 100_000 },
  documents: { attack: attackDocuments, usual: 100_000 },
  configuration: { attack: attackConfiguration, usual: 20_000 },
  scenarios: { attack: attackScenarios, usual: 10_000 },
  database: { attack: attackDatabase, usual: 5_000 },
  admin: { attack: attackAdmin, usual: 50_000 },
  relay: { attack: attackRelay, usual: 10_000 },
  costs: { attack: attackCosts, usual: 1024 },
}
