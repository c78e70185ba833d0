import type { Check } from './check.ts'
import { actions } from './rules/actions.ts'
import { agents } from './rules/agents.ts'
import { artifacts } from './rules/artifacts.ts'
import { bodies } from './rules/bodies.ts'
import { creation } from './rules/creation.ts'
import { discovery } from './rules/discovery.ts'
import { exampleChecks } from './rules/examples.ts'
import { files } from './rules/files.ts'
import { forkChecks } from './rules/forks.ts'
import { idempotencyChecks } from './rules/idempotency.ts'
import { lists } from './rules/lists.ts'
import { models } from './rules/models.ts'
import { openChecks } from './rules/open.ts'
import { queueChecks } from './rules/queue.ts'
import { refusals } from './rules/refusals.ts'
import { scopeChecks } from './rules/scopes.ts'
import { sessions } from './rules/sessions.ts'
import { streams } from './rules/streams.ts'
import { tools } from './rules/tools.ts'
import { transcript } from './rules/transcript.ts'
import { turnChecks } from './rules/turns.ts'
import { webhooks } from './rules/webhooks.ts'

/** All checks. The long ones come first: a long check that started last would make the run longer. */
export const CHECKS: readonly Check[] = [
  ...streams,
  ...discovery,
  ...scopeChecks,
  ...exampleChecks,
  ...openChecks,
  ...refusals,
  ...lists,
  ...webhooks,
  ...actions,
  ...turnChecks,
  ...transcript,
  ...queueChecks,
  ...artifacts,
  ...files,
  ...tools,
  ...agents,
  ...models,
  ...sessions,
  ...idempotencyChecks,
  ...creation,
  ...forkChecks,
  ...bodies,
]
