import { publish } from '../publish.ts'
import type { Scene } from './scene.ts'
import type { Todo } from '../step.ts'

/** Shows the agent's list of remaining tasks. */
export function todos({ world, session, turn }: Scene, list: readonly Todo[]): void {
  publish(world, session, turn.id, 'agent.todos', { open: { todos: list } })
}

/** Replaces `messages` earlier messages in the model's context by one summary. */
export function compact({ world, session, turn }: Scene, messages: number): void {
  publish(world, session, turn.id, 'agent.compaction', { open: { messages } })
}
