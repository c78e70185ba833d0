const NAME = 'agent-session-sidecar'

interface Mistake {
  text: string
  /** Where the error is reported. */
  line: number
  /** What the one error says, among other words. */
  says: readonly string[]
}

/** Programs that must not compile. */
export const MISTAKES: readonly Mistake[] = [
  {
    text: `import { createSidecar } from '${NAME}'
const sidecar = await createSidecar({ config: 'sidecar.yaml' })
sidecar.on('turn.setled', () => undefined)
`,
    line: 3,
    says: [`'"turn.setled"' is not assignable to parameter of type 'EventType'`],
  },
  {
    text: `import { createSidecar } from '${NAME}'
const sidecar = await createSidecar({ config: 'sidecar.yaml' })
sidecar.on('foo.*', () => undefined)
`,
    line: 3,
    says: [`'"foo.*"' is not assignable to parameter of type 'EventType'`],
  },
  {
    text: `import { defineHandlers } from '${NAME}'
export default defineHandlers({
  on: {
    'turn.setled': () => undefined,
  },
})
`,
    line: 4,
    says: [`''turn.setled'' does not exist in type 'Handlers'`],
  },
  {
    text: `import { tool } from '${NAME}'
export default tool({
  name: 'lookup_order',
  description: 'Finds an order by its id',
  input: { type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] },
  run: ({ order_ids }) => order_ids,
})
`,
    line: 6,
    says: [`Property 'order_ids' does not exist on type '{ order_id: string; }'`],
  },
  {
    text: `import { defineHandlers } from '${NAME}'
export default defineHandlers({
  on: {
    'turn.settled': (event) => event.data.turn.completed_at.toFixed(),
  },
})
`,
    line: 4,
    says: [`'event.data.turn.completed_at' is possibly 'null' or 'undefined'`],
  },
  {
    text: `import { verifyCallback } from '${NAME}'
const event = verifyCallback({ headers: {}, body: '', secrets: [] })
if (event.type === 'turn.setled') throw new Error('never')
`,
    line: 3,
    says: [`'"turn.setled"' have no overlap`, '(a type that this version does not know)'],
  },
]

/** A program that uses an event which the service began to send after this version. */
export const YOUNGER = `
import { createSidecar, type TranscriptData } from '${NAME}'
declare module '${NAME}' {
  interface EventData { 'agent.progress': TranscriptData<{ percent?: number }> }
}
const sidecar = await createSidecar({ config: 'sidecar.yaml' })
sidecar.on('agent.progress', (event) => event.data.payload.percent?.toFixed())
sidecar.on('agent.*', (event) => event.type === 'agent.progress' && event.data.payload.percent)
`
