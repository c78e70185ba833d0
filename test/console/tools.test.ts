import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { hasBrowser, openBrowser, visit } from './browser.ts'

/** A sidecar that answered a call with the fixed error text, because the tool said 422. */
async function answeredWithError(): Promise<Rig> {
  const rig = await Rig.open({ tools: { lookup_order: {} } })
  rig.app.run = () => ({ status: 422 })
  const session = await rig.client.withTools({ lookup_order: 60 })
  await rig.client.send(session, 'call lookup_order {"order_id":"42"}')
  await until('an answer', async () => (await rig.list('/api/calls?state=answered')).length === 1)
  return rig
}

it('a call that was answered with the error text says so', async () => {
  await using rig = await answeredWithError()
  const [call] = await rig.list('/api/calls')
  expect(call).toMatchObject({ state: 'answered', answer: 'error', error: expect.stringContaining('422') })
})

describe.skipIf(!hasBrowser)('the tools of the console', () => {
  let browser: Browser

  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())

  it('count a call that was answered with the error text beside the error that they show', async () => {
    await using rig = await answeredWithError()
    await using visited = await visit(browser, `${rig.program?.admin ?? ''}/#/handlers`)
    const card = visited.page.getByRole('article', { name: 'Tool lookup_order' })
    await card.locator('.fault').waitFor()
    const shown = await card.locator('dl').innerText()
    expect(shown).toMatch(/Answered with the error text\s+1\s+Not answered\s+0\s/)
  })
})
