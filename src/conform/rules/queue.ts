import { writing, type Check } from '../check.ts'
import { typeOf } from '../feed.ts'
import { STREAM_EVENTS } from '../interface.ts'
import { at, is, kind, rowsOf, textAt } from '../kind.ts'
import { fill } from '../places.ts'
import { speech } from '../speech.ts'
import { framesOf, say, workingTurn } from '../talk.ts'
import type { Trial } from '../trial.ts'

const queue = writing(
  'messages queue behind a running turn, five and no more',
  'STA-01..04 LIM-09 ERR-26 ERR-27 SES-04 TRN-04 TRN-11 EVT-47 EVT-48 STA-22 TRN-28 STA-19',
  async (trial) => {
    const id = await trial.session()
    await say(trial, id, speech.hang())
    const turn = await working(trial, id)
    const status = async () => at((await trial.get(`/v1/sessions/${id}`)).json, 'status')
    for (let place = 1; place <= 5; place++) {
      const reply = await say(trial, id, speech.say(`number ${place}`))
      trial.status('STA-01 LIM-09 STA-19', reply, 202)
      trial.is('STA-02', reply, 'queued', is(true))
      const positions = Object.entries(Object(reply.json) as object).filter(([key]) =>
        key.includes('position'),
      )
      trial.value(
        'STA-03',
        reply,
        'position',
        positions[0]?.[1],
        kind('a number', (value) => typeof value === 'number'),
      )
    }
    trial.value('STA-01', null, 'status of the session', await status(), is('working'))
    const sixth = await say(trial, id, speech.say('one too many'))
    trial.refused('LIM-09 ERR-26', sixth, null, 'queue_full')
    trial.note('ERR-27', `${sixth.status}`)
    trial.value('STA-04', sixth, 'status of the session', await status(), is('working'))
    const { cancel } = trial.places
    if (cancel === null) trial.leave('TRN-28 EVT-48', 'the description does not show the path for cancelling')
    else await cancelled(trial, id, turn)
    const wanted = ['message.queued', ...(cancel === null ? [] : ['message.dequeued'])]
    const seen = await framesOf(trial, id, (all) =>
      wanted.every((name) => all.some((frame) => typeOf(frame) === name)),
    )
    for (const name of wanted) {
      const rule = STREAM_EVENTS.find(([known]) => known === name)?.[1] ?? ''
      trial.expect(
        rule,
        trial.ground.feed?.reply ?? null,
        `a frame ${name}`,
        seen.some((frame) => typeOf(frame) === name),
      )
    }
    await trial.remove(id)
  },
)

const steering = writing('only a running turn is steered', 'INP-03 INP-09 ERR-24', async (trial) => {
  const id = await trial.session()
  const idle = await say(trial, id, speech.say('nothing to steer'), true)
  trial.refused('ERR-24 INP-09', idle, 409, 'conflict')
  const none = await trial.get(`/v1/sessions/${id}/turns`)
  trial.is('INP-09', none, 'data', is([]))
  await say(trial, id, speech.hang())
  await workingTurn(trial, id)
  const steered = await say(trial, id, speech.say('steered'), true)
  trial.status('INP-03', steered, 202)
  await trial.remove(id)
})

/**
 * @throws {Stuck} when no turn starts in time.
 */
async function working(trial: Trial, id: string): Promise<unknown> {
  const { turn, reply } = await workingTurn(trial, id)
  trial.value('TRN-04', reply, 'status', at(turn, 'status'), is('working'))
  trial.value('TRN-11', reply, 'artifacts', at(turn, 'artifacts'), is(null))
  const session = await trial.get(`/v1/sessions/${id}`)
  trial.is('SES-04', session, 'status', is('working'))
  return turn
}

async function cancelled(trial: Trial, id: string, turn: unknown): Promise<void> {
  const { cancel } = trial.places
  if (cancel === null) return
  const turnId = textAt(turn, 'id')
  const reply = await trial.post(fill(cancel, { session: id, turn: turnId }))
  trial.note('TRN-28', `${cancel.method} ${cancel.path}: ${reply.status}`)
  const find = (json: unknown): unknown => rowsOf(json).find((one) => textAt(one, 'id') === turnId)
  const list = await trial.until(
    `/v1/sessions/${id}/turns`,
    ({ json }) => at(find(json), 'status') !== 'working',
  )
  trial.note('STA-22', `a cancelled turn is ${textAt(find(list.json), 'status')}`)
}

export const queueChecks: readonly Check[] = [queue, steering]
