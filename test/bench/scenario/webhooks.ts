import { Type } from 'typebox'
import { Child } from '../child.ts'
import { handlerAt, type Scenario } from '../scenario.ts'
import { PATIENCE } from '../stage.ts'
import { Subject } from '../subject.ts'

const NAME = 'webhooks'
const DELIVERIES = 20_000
const CONNECTIONS = 64
const SECRET = 'whs_the_secret_of_the_bench_0123456789'

/** Distinct genuine deliveries: verified, deduplicated and committed before each 2xx. */
export const webhooks: Scenario = {
  measures: [
    {
      name: NAME,
      unit: 'requests/s',
      digits: 0,
      judge: (ours, baseline) => ours / baseline,
      judged: '# of a bare route',
      floor: { at: 'least', value: 0.5 },
      goal: { value: 0.6 },
    },
  ],
  async open(bench) {
    const load = bench.use(await Child.fork('load'))
    const source = bench.use(await Child.fork('source'))
    const receiver = bench.use(await Child.fork('receiver'))
    const base_url = await source.ask('address', Type.String())
    const handler = await receiver.ask('address', Type.String())
    const count = bench.scaled(DELIVERIES)
    const fire = async (url: string): Promise<number> => {
      await load.do('prepare', { deliveries: count, secret: SECRET })
      return await load.ask('fire', Type.Number(), { url, connections: CONNECTIONS }, PATIENCE)
    }
    return {
      async ours() {
        await using subject = await Subject.start(bench.folder(), {
          service: { base_url, token: 'svc_pat_bench' },
          webhooks: { enabled: true, listen: '127.0.0.1:0', secrets: [SECRET] },
          handlers: [handlerAt(`${handler}/callbacks`)],
        })
        const figures = { [NAME]: await fire(subject.webhookUrl) }
        const accepted = await subject.metric('webhooks_received_total{outcome="accepted"}')
        if (accepted !== count) throw new Error(`${accepted} of ${count} deliveries were accepted as new`)
        await subject.stop()
        return figures
      },
      async baseline() {
        await using route = await Child.fork('route')
        const address = await route.ask('address', Type.String())
        return { [NAME]: await fire(`${address}/webhooks`) }
      },
    }
  },
}
