import { freePort } from '../support/listen.ts'
import { SECRET } from '../support/app.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

/** Text that would do harm if it were taken for more than text. */
export const HOSTILE = {
  markup: '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>',
  direction: 'invoice \u202Egnp.exe',
  terminal: '\u001B[31mred\u001B[0m',
  wide: 'v'.repeat(500),
}

export interface Stage extends AsyncDisposable {
  rig: Rig
  url: string
  sessions: { plain: string; approval: string; hostile: string }
}

/**
 * A sidecar whose store has a turn with a tool call and an artifact, a session that requires an action, one whose texts are
 * hostile, and dead letters. The dead letters are of the handler `audit`, which answered 500.
 */
export async function openStage(): Promise<Stage> {
  const listen = `127.0.0.1:${await freePort()}`
  const rig = await Rig.open({
    config: { admin: { listen } },
    handlers: (app) => [
      { name: 'app', url: app.handlerUrl('app'), secret: SECRET, timeout: '2s' },
      {
        name: 'audit',
        url: app.handlerUrl('audit'),
        secret: SECRET,
        events: ['turn.settled'],
        retry: { attempts: 2, base: '10ms', max: '20ms' },
      },
    ],
    tools: { lookup_order: { description: 'Finds an order by its id' } },
  })
  try {
    rig.app.handle = ({ name }) =>
      name === 'audit' ? { status: 500, body: '{"error":"the <b>ledger</b> is closed"}' } : {}
    const { client } = rig
    const plain = await client.withTools({ lookup_order: 60 }, { title: 'Where is order 42?' })
    await client.send(
      plain,
      'say Let me look.',
      'call lookup_order {"order_id":"42"}',
      'write outputs/report.txt It is on its way.',
      'say Your order is on its way.',
    )
    const approval = await client.create({ title: 'Clean the build' })
    await client.send(approval, 'approve shell rm -rf build', 'say Done.')
    const { markup, direction, terminal, wide } = HOSTILE
    const hostile = await client.create({ title: markup, metadata: { note: direction, wide } })
    await client.send(hostile, `say ${markup}`, `say ${direction}`, `say ${terminal}`)
    await until('a past', async () => {
      const dead = await rig.list('/api/deliveries?status=dead')
      const open = await rig.list('/api/actions')
      return dead.length === 2 && open.length === 1
    })
    return {
      rig,
      url: `http://${listen}/`,
      sessions: { plain, approval, hostile },
      [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose](),
    }
  } catch (error) {
    await rig[Symbol.asyncDispose]()
    throw error
  }
}
