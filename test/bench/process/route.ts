import { fastify } from 'fastify'
import { serve } from './serve.ts'

/** The least that could take a webhook: it believes everything and keeps nothing. */
const app = fastify()
app.post('/webhooks', async () => ({ received: true }))
const address = await app.listen({ host: '127.0.0.1', port: 0 })

serve({ address: () => address })
