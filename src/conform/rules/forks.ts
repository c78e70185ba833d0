import { writing, type Check } from '../check.ts'
import { at, boolean, is, rowsOf, string, textAt } from '../kind.ts'
import { codeOf, describeReply, messageOf } from '../reply.ts'
import { speech } from '../speech.ts'
import { turnOf } from '../talk.ts'

const forks = writing('a session is forked', 'SES-93..95 SES-126 SES-128', async (trial) => {
  const word = `fork-${trial.ground.belongings.mark}`
  const id = await trial.session({ metadata: { word } })
  const reply = await trial.post(`/v1/sessions/${id}/fork`)
  trial.expect('SES-93', reply, 'a fork', reply.status < 300)
  trial.is('SES-94', reply, 'forked_from', string)
  trial.is('SES-94', reply, 'forked_from', is(id))
  trial.is('SES-95', reply, 'workspace_copied', boolean)
  const stated = ['forked_from', 'workspace_copied']
  trial.note(
    'SES-128',
    Object.keys(Object(reply.json) as object)
      .filter((key) => !stated.includes(key))
      .join(', ') || 'none',
  )
  const copies = rowsOf((await trial.get('/v1/sessions', { metadata: `word:${word}` })).json)
  const copy = copies.map((row) => textAt(row, 'id')).find((one) => one !== id)
  trial.expect('SES-126', reply, 'one more session', copy !== undefined)
  const bad = await trial.post(`/v1/sessions/${id}/fork`, { conform: 1 })
  trial.refused('SES-93', bad, 400, 'invalid_request')
  if (copy !== undefined) await trial.remove(copy)
  await trial.remove(id)
})

const previews = writing(
  'a preview is published, or refused with a reason',
  'PRE-01..08 PRE-12 PRE-13 EVT-60 TOO-37',
  async (trial) => {
    const id = await trial.session()
    await turnOf(trial, id, speech.preview(8080))
    const session = await trial.get(`/v1/sessions/${id}`)
    const port = at(session.json, 'preview.port')
    if (port === null || port === undefined) trial.leave('PRE-01..03', 'the agent opened no preview')
    else {
      trial.is('PRE-01 TOO-37', session, 'preview.url', string)
      trial.is('PRE-02', session, 'preview.port', is(8080))
      const { feed } = trial.ground
      if (feed !== null)
        trial.expect(
          'EVT-60',
          feed.reply,
          'a frame preview.ready',
          feed.of(id).some(({ text }) => text.includes('"preview.ready"')),
        )
    }
    const path = `/v1/sessions/${id}/preview`
    const published = await trial.post(path, {})
    if (codeOf(published) === 'not_found') {
      trial.status('PRE-07', published, 404)
      trial.expect('PRE-08', published, 'a message about the domain', /domain/i.test(messageOf(published)))
      trial.leave('PRE-04', 'the deployment has no domain for previews')
    } else if (published.status < 300) {
      const after = await trial.get(`/v1/sessions/${id}`)
      trial.is('PRE-04 PRE-03', after, 'preview.published_url', string)
      trial.note('PRE-12', Object.keys(Object(published.json) as object).join(', '))
    } else trial.leave('PRE-04', describeReply(published))
    const down = await trial.deployment.call('DELETE', path)
    trial.expect('PRE-05', down, 'nothing published', down.status < 300)
    trial.note('PRE-13', `${down.status} ${Object.keys(Object(down.json) as object).join(', ')}`)
    const gone = await trial.get(`/v1/sessions/${id}`)
    const left = at(gone.json, 'preview.published_url')
    trial.expect(
      'PRE-05 PRE-03',
      gone,
      'no published_url',
      left === null || left === undefined || left === '',
      left,
    )
    trial.refused(
      'PRE-06',
      await trial.deployment.call('DELETE', path, { body: { conform: 1 } }),
      400,
      'invalid_request',
    )
    await trial.remove(id)
  },
)

export const forkChecks: readonly Check[] = [forks, previews]
