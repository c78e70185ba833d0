import path from 'node:path'
import { Client } from 'pg'
import { request } from 'undici'
import { expect, test } from 'vitest'
import { FULL } from '../support/full.ts'
import { assertWhole } from '../support/oracle.ts'
import { until } from '../support/until.ts'
import { Deployment, type Replica } from './deployment.ts'
import { formerProgram, unpack } from './former-program.ts'

const CALL = 'call lookup_order {"order_id":"1"}'
const FORMER = FULL ? formerProgram() : null

test.runIf(FORMER)(
  'a rolling upgrade: replicas before and after the newest migration share the sessions, and nothing is lost or doubled',
  { timeout: 180_000 },
  async () => {
    if (FORMER === null) throw new Error('there is no former program')
    await using deployment = await Deployment.open(0, {
      process: true,
      tools: { lookup_order: {} },
      emulator: { limits: { sessions: 200 } },
    })
    const { rig } = deployment
    const former = { main: unpack(FORMER, path.join(rig.folder, 'former')) }
    const sessions: string[] = []
    const begin = async (): Promise<void> => {
      for (let count = 0; count < 8; count++)
        sessions.push(await rig.client.start(CALL, 'say {{last}}', 'say Done'))
    }
    const finish = async (): Promise<void> => {
      for (const session of sessions) await rig.client.reached(session, 'idle')
      await assertWhole(rig, { tools: ['lookup_order'] })
    }
    const old = await deployment.add({}, former)
    const lastOld = await deployment.add({}, former)
    await deployment.shared()
    expect(await schemaOf(rig.config.store?.url)).toBe(FORMER.schema)

    // The first new one migrates while the old ones work.
    await begin()
    const first = await deployment.add()
    expect(await schemaOf(rig.config.store?.url)).toBe(FORMER.schema + 1)
    await begin()
    await deployment.shared()
    await until('deliveries of each replica', async () => {
      await begin()
      await finish()
      const counts = await Promise.all(deployment.replicas.map(delivered))
      return counts.every((count) => count > 0)
    })

    // What an operator does at one reaches the other.
    for (const [one, other] of [
      [lastOld, first],
      [first, lastOld],
    ] as const) {
      await one.admin('POST', '/api/handlers/app/pause')
      await until('pause at the other', async () => (await stateAt(other)) === 'paused')
      await one.admin('POST', '/api/handlers/app/resume')
      await until('resume at the other', async () => (await stateAt(other)) === 'up')
    }

    // One old replica is killed in the middle of it, and cannot start again: the others go on.
    await begin()
    await deployment.remove(old, 'kill')
    await begin()
    await expect(deployment.add({}, former)).rejects.toThrow(
      `the database was written by a newer version (schema ${FORMER.schema + 1}, this program knows ${FORMER.schema})`,
    )
    await deployment.add()
    await deployment.shared()
    await begin()
    await deployment.remove(lastOld, 'stop')
    await begin()
    await deployment.shared()
    await finish()
    const runs = rig.app.runs.filter(({ call }) => !call.uncertain)
    expect(runs.length).toBe(new Set(runs.map(({ call }) => call.call_id)).size)
  },
)

async function schemaOf(connectionString: string | undefined): Promise<number> {
  const client = new Client({ connectionString })
  await client.connect()
  const { rows } = await client.query<{ version: number }>(
    'SELECT max(version) AS version FROM sidecar.schema_versions',
  )
  await client.end()
  return rows[0]?.version ?? 0
}

async function stateAt(replica: Replica): Promise<string | undefined> {
  const { data } = (await replica.admin('GET', '/api/handlers')) as { data: { state: string }[] }
  return data[0]?.state
}

async function delivered({ program }: Replica): Promise<number> {
  const text = await (await request(`${program.admin}/metrics`)).body.text()
  const [, count] =
    /^session_sidecar_callback_attempts_total\{handler="app",outcome="delivered"\} (\d+)$/m.exec(text) ?? []
  return Number(count ?? 0)
}
