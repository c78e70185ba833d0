const NAME = 'agent-session-sidecar'

/** A user's program with the package, checked by the compiler and then run. */
export const PROGRAM = `
import {
  createSidecar, defineHandlers, DeadLetter, isFact, tool, verifyCallback, type ConfigInput, type Event, type TranscriptEvent,
} from '${NAME}'
import { createClient, isEvent, ServiceError, type Client, type Session } from '${NAME}/client'
import { startEmulator } from '${NAME}/emulator'

const emulator = await startEmulator({})
const config: ConfigInput = {
  service: { base_url: emulator.baseUrl, token: 'svc_pat_dev' },
  store: { url: 'sqlite:' + process.argv[2] + '/sidecar.db' },
  admin: { listen: '127.0.0.1:0' },
  log: { level: 'silent' },
}
const lookup = tool({
  name: 'lookup',
  description: 'Finds',
  input: { type: 'object' },
  run: (_args, { callId, attempt }) => callId + String(attempt),
})
const handlers = defineHandlers({ on: { 'turn.settled': (event) => void event.data.turn.status }, tools: [lookup] })
const sidecar = await createSidecar({ config })
sidecar.tool(lookup)
sidecar.on('turn.settled', (event) => {
  const status: string = event.data.turn.status
  if (status === 'never') throw new DeadLetter()
})
await sidecar.start()
const names = sidecar.tools().map(({ name }) => name)
await sidecar.stop()
const client: Client = createClient({ baseUrl: emulator.baseUrl, token: 'svc_pat_dev' })
const session: Session = await client.sessions.create({ title: 'packed' })
const stream = await client.sessions.events(session.id, { after: 0 })
await client.sessions.send(session.id, 'say Hello')
let said = ''
for await (const event of stream) {
  if (isEvent(event, 'agent.message')) said = event.payload.text
  if (event.type === 'turn.ended') break
}
const fault: unknown = await client.sessions.get('none').catch((error: unknown) => error)
const code = fault instanceof ServiceError ? fault.code : ''
await client.close()
await emulator.close()
const statusOf = (event: Event | TranscriptEvent): string | null =>
  isFact(event, 'turn.settled') ? event.data.turn.status : null
let rejected = ''
try {
  statusOf(verifyCallback({ headers: {}, body: '{}', secrets: [] }))
} catch (error) {
  rejected = String(error)
}
process.stdout.write(JSON.stringify({ names, events: handlers.events, rejected, title: session.title, said, code }))
`

/** How the program's own compiler is set. */
export const COMPILER = {
  compilerOptions: {
    target: 'es2024',
    module: 'nodenext',
    strict: true,
    exactOptionalPropertyTypes: true,
    outDir: 'out',
    rootDir: '.',
  },
  files: ['program.ts'],
}
