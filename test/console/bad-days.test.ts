import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { STATUS, startAdmin, type Running } from '../admin/running.ts'
import { actionRaw, readingOf, sessionRaw, turnFact, turnRaw } from '../admin/seed.ts'
import { freePort } from '../support/listen.ts'
import { hasBrowser, openBrowser, visit } from './browser.ts'

const TOKEN = 'correct horse battery staple'

describe.skipIf(!hasBrowser)('the console', () => {
  let browser: Browser
  let running: Running

  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())
  afterEach(() => running.stop())

  it('asks for the token, stores it nowhere, and ends the login with a click', async () => {
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

  it('asks for the token again when the login expired, and returns to the same page', async () => {
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

  it('reads again after a restart of the sidecar, and asks for the token if that has changed', async () => {
    const listen = { host: '127.0.0.1', port: await freePort() }
    running = await startAdmin({ token: () => TOKEN, listen })
    await using visited = await visit(browser, `${running.base}/#/handlers`)
    const { page } = visited
    await page.getByLabel('Admin token').fill(TOKEN)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Handlers and tools' }).waitFor()
    const restart = async (token: string): Promise<void> => {
      await running?.stop()
      await page.getByText('The sidecar has not answered for').waitFor()
      running = await startAdmin({ token: () => token, listen })
      await page.getByText('The sidecar has not answered for').waitFor({ state: 'hidden', timeout: 15_000 })
    }
    await restart(TOKEN)
    expect(await page.getByRole('heading', { name: 'Handlers and tools' }).count()).toBe(1)
    await restart(`${TOKEN} of tomorrow`)
    await page.getByLabel('Admin token').waitFor({ timeout: 15_000 })
    expect(await page.getByRole('heading', { name: 'Handlers and tools' }).count()).toBe(0)
  }, 60_000)

  it('shows that the page is old when another version answers', async () => {
    const listen = { host: '127.0.0.1', port: await freePort() }
    running = await startAdmin({ listen })
    await using visited = await visit(browser, `${running.base}/#/handlers`)
    const { page } = visited
    await page.getByRole('heading', { name: 'Handlers and tools' }).waitFor()
    await running.stop()
    running = await startAdmin({ listen, version: '2.0.0' })
    await page.getByText('The sidecar now runs another version.').waitFor({ timeout: 15_000 })
    await page.getByRole('button', { name: 'Load the new console' }).click()
    await page.getByRole('heading', { name: 'Handlers and tools' }).waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
  }, 40_000)

  it('shows a session with invalid times, and with objects in place of texts', async () => {
    const odd = { toString: 1, valueOf: 1 }
    const action = actionRaw('call_1', { type: 'function_call', name: odd, created_at: 'soon' })
    const waiting = sessionRaw('s-odd', {
      status: 'requires_action',
      title: 'Odd',
      updated_at: Number.MAX_SAFE_INTEGER,
      created_at: Number.MAX_SAFE_INTEGER,
      required_actions: [action],
    })
    const turn = turnRaw('t1', 's-odd', { created_at: 8e15, started_at: -9e15, completed_at: 9e300 })
    running = await startAdmin({
      async seed(store) {
        const usual = { ...waiting, updated_at: 1, created_at: 1 }
        const facts = [
          turnFact('turn.settled', turn, {
            body: JSON.stringify({ turn, artifacts: [{ path: odd, reason: odd }] }),
          }),
        ]
        await store.log.commit({ readings: [readingOf(usual, { turns: [turn], facts })] })
      },
    })
    await using visited = await visit(browser, `${running.base}/#/sessions`)
    const { page } = visited
    await page.getByText('Odd').first().waitFor()
    await page.goto(`${running.base}/#/sessions/s-odd`)
    await page.getByRole('heading', { name: 'Turns, the newest first' }).waitFor()
    await page.goto(`${running.base}/#/actions`)
    await page.getByText('in session').first().waitFor()
    await page.goto(`${running.base}/#/`)
    await page.getByRole('heading', { name: 'Channels' }).waitFor()
    expect(visited.browserErrors).toEqual([])
  })

  it('explains an address without a page', async () => {
    running = await startAdmin()
    await using visited = await visit(browser, `${running.base}/#/sessions/none%20such`)
    const { page } = visited
    await page.getByText('There is no session none such.').waitFor()
    await page.goto(`${running.base}/#/no/page`)
    await page.getByText('There is no such page.').waitFor()
    await page.goto(`${running.base}/#/sessions?status=%E0%A4%A`)
    await page.getByText('No session matches.').waitFor()
    expect(visited.browserErrors.filter((text) => !text.includes('404'))).toEqual([])
  })

  it("links a waiting action to its session in the service's Console, if the configuration has its address", async () => {
    const approval = actionRaw('call_1', { type: 'approval' })
    running = await startAdmin({
      status: () => ({
        ...STATUS,
        service: {
          base_url: 'https://agents.example.com',
          console_url: 'https://console.example.com/s/{session_id}?tab=open',
          held_until: null,
        },
      }),
      seed: (store) =>
        store.log.commit({
          readings: [
            readingOf(sessionRaw('s/1', { status: 'requires_action', required_actions: [approval] })),
          ],
        }),
    })
    await using visited = await visit(browser, `${running.base}/#/actions`)
    const { page } = visited
    const link = page.getByRole('link', { name: 'answer in the Console' })
    expect(await link.getAttribute('href')).toBe('https://console.example.com/s/s%2F1?tab=open')
    expect(await link.getAttribute('rel')).toBe('noreferrer noopener')
    const front = page.getByRole('link', { name: 'https://console.example.com/s/', exact: true })
    expect(await front.getAttribute('href')).toBe('https://console.example.com/s/')
  })

  it('shows a removed handler whose deliveries wait, without buttons', async () => {
    running = await startAdmin()
    await using visited = await visit(browser, `${running.base}/#/`)
    const { page } = visited
    const former = { name: 'former', state: 'removed', pending: 2, dead: 1 }
    await page.route(/\/api\/handlers(\?|$)/, (route) =>
      route.fulfill({
        json: { data: [{ ...former, since: null, last_error: null, oldest_pending_at: 1 }], has_more: false },
      }),
    )
    await page.goto(`${running.base}/#/handlers`)
    const card = page.getByLabel('Handler former')
    await card.getByText('removed', { exact: true }).waitFor()
    expect(await card.getByRole('button').count()).toBe(0)
  })

  it('sends a handler a test fact if the sidecar can, and shows its answer', async () => {
    running = await startAdmin()
    await using visited = await visit(browser, `${running.base}/#/overview`)
    const { page } = visited
    const asked: string[] = []
    await page.route('**/openapi.json', (route) =>
      route.fulfill({ json: { paths: { '/api/handlers/{name}/test': {} } } }),
    )
    await page.route('**/api/handlers/audit/test', (route) => {
      asked.push(route.request().method())
      return route.fulfill({
        json: { type: 'turn.settled', outcome: 'retry', status: 503, error: 'too busy', ms: 12 },
      })
    })
    await page.goto(`${running.base}/#/handlers`)
    await page.getByLabel('Handler audit').getByRole('button', { name: 'Send a test' }).click()
    await page.getByText('test of turn.settled: retry, it answered 503, too busy, in 12 ms.').waitFor()
    expect(asked).toEqual(['POST'])
  })
})
