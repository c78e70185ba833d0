import { writing, type Check } from '../check.ts'
import { at, is, rowsOf, textAt } from '../kind.ts'
import { describeReply } from '../reply.ts'
import { messageBody, speech } from '../speech.ts'
import { Stuck } from '../stuck.ts'
import type { Trial } from '../trial.ts'

const idempotency = writing(
  'requests with one idempotency value have one effect',
  'GEN-28..31 LIM-20 LIM-21',
  async (trial) => {
    const header = trial.places.idempotency
    if (header === null) throw new Stuck('the description does not name the header')
    const value = `conform-${trial.ground.belongings.mark}`
    const body = trial.marked({ title: 'conform: once' })
    const [first, second] = [
      await trial.post('/v1/sessions', body, { [header]: value }),
      await trial.post('/v1/sessions', body, { [header]: value }),
    ]
    trial.expect('GEN-28', first, 'a session', first.status < 300)
    const id = textAt(first.json, 'id')
    trial.is('GEN-30 GEN-31', second, 'id', is(id))
    trial.expect(
      'GEN-30',
      second,
      'the same answer as the first',
      second.text === first.text && second.status === first.status,
    )
    await said(trial, id, header)
    const long = await trial.post('/v1/sessions', trial.marked({}), { [header]: 'x'.repeat(256) })
    trial.note('LIM-21', describeReply(long).slice(0, 120))
    const exact = await trial.post('/v1/sessions', trial.marked({}), { [header]: value.padEnd(255, 'x') })
    trial.expect('LIM-20', exact, 'a session', exact.status < 300)
    for (const reply of [long, exact]) if (reply.status < 300) await trial.remove(textAt(reply.json, 'id'))
    await trial.remove(id)
  },
)

async function said(trial: Trial, id: string, header: string): Promise<void> {
  const { message } = trial.places
  const { schemas } = trial.ground.description
  const body = message === null ? null : messageBody(schemas, message.body, speech.say('once'))
  if (message === null || body === null) return
  const path = message.path.replace(/\{[^}]*\}/, id)
  const headers = { [header]: `message-${trial.ground.belongings.mark}` }
  const [one, two] = [await trial.post(path, body, headers), await trial.post(path, body, headers)]
  trial.status('GEN-29', one, 202)
  trial.expect('GEN-30', two, 'the same answer as the first', two.text === one.text)
  await trial.until(`/v1/sessions/${id}`, ({ json }) => at(json, 'status') === 'idle')
  const turns = await trial.get(`/v1/sessions/${id}/turns`)
  const count = rowsOf(turns.json).length
  trial.value('GEN-31', turns, 'the number of turns', count, is(1))
}

export const idempotencyChecks: readonly Check[] = [idempotency]
