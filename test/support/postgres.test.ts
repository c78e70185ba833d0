import { Client } from 'pg'
import { expect, test } from 'vitest'
import { PostgresServer } from './postgres.ts'

test('a deadlock counts, also one before the server is killed', async () => {
  const server = await PostgresServer.start(['fsync=off', 'deadlock_timeout=10ms'])
  try {
    await deadlock(server)
    await expect.poll(() => server.deadlocks).toBe(1)
    await server.kill()
    await server.run()
    await deadlock(server)
    await expect.poll(() => server.deadlocks).toBe(2)
  } finally {
    await server.stop()
  }
})

/** Two connections take two locks in opposite order. */
async function deadlock(server: PostgresServer): Promise<void> {
  const clients = [1, 2].map(() => new Client({ connectionString: server.url() }))
  const lock = (client: Client | undefined, id: number): Promise<unknown> | undefined =>
    client?.query('SELECT pg_advisory_xact_lock($1)', [id])
  const [one, two] = clients
  for (const client of clients) {
    await client.connect()
    await client.query('BEGIN')
  }
  await lock(one, 1)
  await lock(two, 2)
  const outcomes = await Promise.allSettled([lock(one, 2), lock(two, 1)])
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  for (const client of clients) await client.end()
}
