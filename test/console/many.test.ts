import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readingOf, sessionRaw } from '../admin/seed.ts'
import { startAdmin, type Running } from '../admin/running.ts'
import { hasBrowser, openBrowser, visit } from './browser.ts'
import { scrollThrough } from './pace.ts'

const SESSIONS = 10_000

describe.skipIf(!hasBrowser)('ten thousand sessions', () => {
  let browser: Browser
  let running: Running

  beforeAll(async () => {
    browser = await openBrowser()
    running = await startAdmin({
      async seed(store) {
        const ids = Array.from({ length: SESSIONS }, (_, n) => `session-${String(n).padStart(5, '0')}`)
        for (let from = 0; from < SESSIONS; from += 500) {
          await store.log.commit({
            readings: ids.slice(from, from + 500).map((id, n) => readingOf(sessionRaw(id), { at: from + n })),
          })
        }
      },
    })
  })
  afterAll(async () => {
    await browser?.close()
    await running?.stop()
  })

  it('are scrolled through with few of them in the page', async () => {
    await using visited = await visit(browser, `${running.base}/#/sessions`)
    const { page, browserErrors } = visited
    await page.getByText('title of session-09999').waitFor()
    const { most } = (await page.evaluate(scrollThrough(SESSIONS))) as { most: number }
    await page.getByText('title of session-00000').waitFor()
    await page.getByText('10000 shown').waitFor()
    expect(most).toBeLessThan(80)
    expect(browserErrors).toEqual([])
  })

  it('are found by a part of the title among all', async () => {
    await using visited = await visit(browser, `${running.base}/#/sessions?text=session-00042`)
    await visited.page.getByText('title of session-00042').waitFor()
    expect(await rows(visited.page)).toBe(1)
  })
})

function rows(page: Page): Promise<number> {
  return page.getByRole('listitem').count()
}
