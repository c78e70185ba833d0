import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startAdmin, type Running } from '../admin/running.ts'
import { freePort } from '../support/listen.ts'
import { hasBrowser, openBrowser, visit } from './browser.ts'

const TOKEN = 'correct horse battery staple'

describe.skipIf(!hasBrowser)('a login in a browser', () => {
  let browser: Browser
  let running: Running

  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())
  afterEach(() => running.stop())

  it('leads to where one was going, leaves the token nowhere, and ends with a click', async () => {
    running = await startAdmin({ token: () => TOKEN })
    await using visited = await visit(browser, `${running.base}/#/handlers`)
    const { page } = visited
    const addresses: string[] = []
    page.on('request', (request) => addresses.push(request.url()))
    const field = page.getByLabel('Admin token')
    await field.fill('wrong')
    await page.keyboard.press('Enter')
    await page.getByText('this is not the admin token').waitFor()
    await field.fill(TOKEN)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Handlers and tools' }).waitFor()

    expect(
      await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])'),
    ).toBe('[{},{},""]')
    expect(addresses.join()).not.toMatch(/correct|wrong/)
    await page.getByLabel('Handler app').getByRole('button', { name: 'Pause' }).click()
    await expect.poll(() => running.asked).toEqual([['pauseHandler', 'app']])

    await page.getByRole('button', { name: 'Sign out' }).click()
    await field.waitFor()
    await page.reload()
    await field.waitFor()
  })

  it('is asked for again when it ended, and the page goes on where it was', async () => {
    let now = 0
    running = await startAdmin({ token: () => TOKEN, now: () => now })
    await using visited = await visit(browser, `${running.base}/#/deliveries?status=dead`)
    const { page } = visited
    const signIn = async () => {
      await page.getByLabel('Admin token').fill(TOKEN)
      await page.keyboard.press('Enter')
      await page.getByText('No dead letters.').waitFor()
    }
    await signIn()
    now += 13 * 60 * 60_000
    await page.getByLabel('Admin token').waitFor()
    await signIn()
    expect(page.url()).toMatch(/#\/deliveries\?status=dead$/)
  })

  it('is asked for again after the sidecar started anew', async () => {
    const listen = { host: '127.0.0.1', port: await freePort() }
    running = await startAdmin({ token: () => TOKEN, listen })
    await using visited = await visit(browser, `${running.base}/#/handlers`)
    const { page } = visited
    await page.getByLabel('Admin token').fill(TOKEN)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Handlers and tools' }).waitFor()
    await running.stop()
    await page.getByText('The sidecar has not answered for').waitFor()
    running = await startAdmin({ token: () => TOKEN, listen })
    await page.getByLabel('Admin token').waitFor({ timeout: 15_000 })
    expect(await page.getByRole('heading', { name: 'Handlers and tools' }).count()).toBe(0)
  }, 40_000)
})
