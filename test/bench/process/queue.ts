import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { createParser } from 'eventsource-parser'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { request } from 'undici'
import { serve } from './serve.ts'

/**
 * What one would build from a queue on PostgreSQL: each frame of the stream becomes a job, those of one chunk in one statement,
 * and a worker posts each to the handler, 32 at once. Not signed, and a frame that comes again is not known.
 */

const AT_ONCE = 32

const Follow = Type.Object({
  service: Type.String(),
  handler: Type.String(),
  database: Type.String(),
  /** Where the queues are installed. */
  folder: Type.String(),
  queue: Type.Union([
    Type.Literal('graphile-worker'),
    Type.Literal('graphile-worker, ordered'),
    Type.Literal('pg-boss'),
  ]),
  /** Whether graphile-worker fetches many jobs at once, as for a burst. */
  local: Type.Boolean(),
})
type Follow = Type.Static<typeof Follow>

interface Job {
  session: string
  data: string
}

interface GraphileWorker {
  Logger: new (factory: () => () => void) => unknown
  run(options: unknown): Promise<unknown>
  makeWorkerUtils(options: unknown): Promise<{ addJobs(jobs: readonly unknown[]): Promise<unknown> }>
}

interface Boss {
  start(): Promise<unknown>
  createQueue(name: string, options: unknown): Promise<unknown>
  insert(name: string, jobs: readonly { data: Job }[]): Promise<unknown>
  work(
    name: string,
    options: unknown,
    run: (jobs: readonly { data: Job }[]) => Promise<void>,
  ): Promise<unknown>
  on(event: 'error', listener: (error: Error) => void): void
}

serve({
  async follow(argument) {
    const options = Value.Parse(Follow, argument)
    const add = await (options.queue === 'pg-boss' ? openBoss(options) : openGraphile(options))
    read(options, add).catch((error: unknown) => {
      throw error
    })
  },
})

async function load<T>(folder: string, name: string): Promise<T> {
  const file = createRequire(path.join(folder, 'package.json')).resolve(name)
  return (await import(pathToFileURL(file).href)) as T
}

type Add = (jobs: readonly Job[]) => Promise<unknown>

async function openGraphile({ folder, database, queue, local, handler }: Follow): Promise<Add> {
  const { Logger, run, makeWorkerUtils } = await load<GraphileWorker>(folder, 'graphile-worker')
  const worker = {
    connectionString: database,
    concurrentJobs: AT_ONCE,
    maxPoolSize: AT_ONCE + 2,
    logger: new Logger(() => () => undefined),
    ...(local ? { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } : {}),
  }
  const { addJobs } = await makeWorkerUtils({ preset: { worker } })
  const taskList = { post: (job: Job) => post(handler, job.data) }
  await run({ preset: { worker }, noHandleSignals: true, taskList })
  const ordered = queue === 'graphile-worker, ordered'
  return (jobs) =>
    addJobs(
      jobs.map((job) => ({
        identifier: 'post',
        payload: job,
        ...(ordered ? { queueName: job.session } : {}),
      })),
    )
}

async function openBoss({ folder, database, handler }: Follow): Promise<Add> {
  const { PgBoss } = await load<{ PgBoss: new (options: unknown) => Boss }>(folder, 'pg-boss')
  const boss = new PgBoss({ connectionString: database, useListenNotify: true })
  boss.on('error', (error) => {
    throw error
  })
  await boss.start()
  await boss.createQueue('post', { notify: true })
  const options = { batchSize: 200, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true }
  await boss.work('post', options, async (jobs) => {
    const queue = jobs.values()
    const worker = async (): Promise<void> => {
      for (const { data } of queue) await post(handler, data.data)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
  })
  return (jobs) =>
    boss.insert(
      'post',
      jobs.map((data) => ({ data })),
    )
}

async function post(handler: string, data: string): Promise<void> {
  const reply = await request(handler, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: data,
  })
  await reply.body.dump()
  if (reply.statusCode !== 200) throw new Error(`the handler answered ${reply.statusCode}`)
}

const Frame = Type.Object({ session_id: Type.String() })

async function read({ service }: Follow, add: Add): Promise<void> {
  const { body } = await request(`${service}/v1/events`, {
    headers: { accept: 'text/event-stream', authorization: 'Bearer svc_pat_bench' },
    bodyTimeout: 0,
  })
  const jobs: Job[] = []
  const parser = createParser({
    onEvent({ data }) {
      jobs.push({ session: Value.Parse(Frame, JSON.parse(data)).session_id, data })
    },
  })
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk as Buffer, { stream: true }))
    if (jobs.length > 0) await add(jobs.splice(0))
  }
}
