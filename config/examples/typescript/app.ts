// A handler and a tool as functions; the sidecar runs in this process.
import { createSidecar, tool } from 'agent-session-sidecar'
import { z } from 'zod'

const sidecar = await createSidecar({
  config: {
    service: { base_url: 'http://127.0.0.1:4010', token: 'svc_pat_dev' },
    store: { url: 'sqlite:sidecar.db' },
    admin: { listen: '127.0.0.1:8481' },
    log: { level: 'warn' },
  },
})

// The same event may come twice: a real app remembers event.id together with what it does.
sidecar.on('turn.settled', (event) => {
  console.log(event.type, event.data.turn.status, event.data.session.title)
})

sidecar.tool(
  tool({
    name: 'lookup_order',
    description: 'Finds an order by its id',
    input: z.object({ order_id: z.string() }),
    run: ({ order_id }, { uncertain }) => {
      console.log('lookup_order', order_id, uncertain ? 'may have run before' : 'for the first time')
      return { order_id, state: 'shipped' }
    },
  }),
)

await sidecar.start()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void sidecar.stop())
