import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasBrowser, openBrowser, visit } from './browser.ts'
import { HOSTILE, openStage, type Stage } from './stage.ts'

describe.skipIf(!hasBrowser)('the console in a browser', () => {
  let browser: Browser
  let stage: Stage

  beforeAll(async () => {
    ;[browser, stage] = await Promise.all([openBrowser(), openStage()])
  })
  afterAll(async () => {
    await browser?.close()
    await stage?.[Symbol.asyncDispose]()
  })

  const open = (hash = '', options = {}) => visit(browser, `${stage.url}${hash}`, options)

  it('leads from the overview to the turn that waits', async () => {
    await using visited = await open()
    const { page, browserErrors } = visited
    const now = page.getByRole('region', { name: 'Needs action now' })
    await now.getByText('handler audit has 2 dead letters').waitFor()
    await now.getByText('1 approval or question without an answer').waitFor()
    await page.locator('.card', { hasText: 'Stream' }).getByText('live').waitFor()
    const turns = page.getByRole('region', { name: 'Turns under way' })
    await turns.getByText('waits for a person: approval').waitFor()
    await turns.getByRole('link', { name: 'Clean the build' }).click()
    await page.getByRole('heading', { name: 'Clean the build' }).waitFor()
    expect(page.url()).toContain(`#/sessions/${stage.sessions.approval}?turn=turn_`)
    await page.locator('.turn summary').getByText('waits for a person: approval').waitFor()
    expect(browserErrors).toEqual([])
  })

  it('shows a session by turn: facts, who saw them first, callbacks, the tool call, the artifact', async () => {
    await using visited = await open(`#/sessions/${stage.sessions.plain}`)
    const { page, browserErrors } = visited
    await page.getByRole('heading', { name: 'Where is order 42?' }).waitFor()
    const calls = page.getByRole('table', { name: 'Tool calls' }).getByRole('row')
    await calls.filter({ hasText: 'lookup_order' }).getByText('answered').waitFor()
    await page.getByRole('table', { name: 'Artifacts' }).getByText('outputs/report.txt').waitFor()
    const settled = page.locator('.fact', { hasText: 'turn.settled' })
    await settled.getByText('audit dead').waitFor()
    await settled.locator('summary').click()
    const attempts = settled.getByRole('table', { name: 'Attempts at audit' })
    await attempts.getByText('attempt 2').waitFor()
    expect(await attempts.getByText('500').count()).toBe(2)
    await settled.locator('pre').getByText('{"error":"the <b>ledger</b> is closed"}').waitFor()
    await settled.getByText(/^(stream|webhook|poll) first$/).waitFor()
    await settled.locator('pre').getByText('"artifacts_skipped"').waitFor()

    await page.getByLabel('Facts', { exact: true }).selectOption('state')
    await page.getByText('agent.message').waitFor({ state: 'detached' })
    expect(page.url()).toContain('family=state')
    expect(browserErrors).toEqual([])
  })

  it('filters sessions by status and title, and keeps the filter in the address', async () => {
    await using visited = await open('#/sessions')
    const { page } = visited
    const rows = page.getByRole('listitem')
    await expect.poll(() => rows.count()).toBe(3)
    await page.getByLabel('Title contains, or id').fill('ORDER')
    await expect.poll(() => rows.count()).toBe(1)
    await page.reload()
    await rows.getByText('Where is order 42?').waitFor()
    expect(await rows.count()).toBe(1)
    await page.getByLabel('Title contains, or id').fill('')
    await page.getByLabel('Status').selectOption('requires_action')
    await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringContaining('Clean the build')])
    await page.getByLabel('Title contains, or id').fill('no such title')
    await page.getByText('No session matches.').waitFor()
  })

  it('shows actions that need a person, and answers none', async () => {
    await using visited = await open('#/actions')
    const { page } = visited
    const people = page.getByRole('region', { name: 'For a person' })
    await people.getByText('Clean the build').waitFor()
    await people.getByText('approval').first().waitFor()
    expect(await page.locator('main').getByRole('button').count()).toBe(0)
    const link = page.getByRole('link', { name: stage.rig.gateway.url })
    expect(await link.getAttribute('rel')).toBe('noreferrer noopener')
  })

  it('pauses, resumes and shows handlers and tools', async () => {
    await using visited = await open('#/handlers')
    const { page } = visited
    const card = page.getByLabel('Handler app')
    await card.getByRole('button', { name: 'Pause' }).click()
    await card.getByText('paused', { exact: true }).waitFor()
    const state = async () => (await stage.rig.list('/api/handlers')).map(({ state }) => state)
    expect(await state()).toEqual(['paused', 'up'])
    await card.getByRole('button', { name: 'Resume' }).click()
    await card.getByText('up', { exact: true }).waitFor()
    expect(await state()).toEqual(['up', 'up'])
    const tool = page.getByLabel('Tool lookup_order')
    await tool.getByText('Finds an order by its id').waitFor()
    await tool.getByText('answered', { exact: true }).waitFor()
  })

  it('shows what agents wrote as text, whatever it is', async () => {
    await using visited = await open('#/sessions')
    const { page, browserErrors } = visited
    await page.getByText(HOSTILE.markup).click()
    await page.getByRole('heading', { name: HOSTILE.markup }).waitFor()
    await page.locator('.said', { hasText: 'invoice \\u202egnp.exe' }).first().waitFor()
    await page.locator('.said', { hasText: '\\u001b[31mred' }).first().waitFor()
    for (const summary of await page.locator('.fact summary').all()) await summary.click()
    await page.getByText('note: invoice \\u202egnp.exe').waitFor()
    const text = await page.locator('body').innerText()
    expect(text).not.toContain('\u202E')
    expect(text).not.toContain('\u001B')
    expect(await page.locator('img, main script').count()).toBe(0)
    expect(await page.evaluate('window.hacked')).toBeUndefined()
    expect(browserErrors).toEqual([])
  })

  it('is worked by keys alone', async () => {
    await using visited = await open()
    const { page } = visited
    const { keyboard } = page
    await page.getByRole('heading', { name: 'Needs action now' }).waitFor()
    await keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await keyboard.press('Escape')
    // Two keys belong together for two seconds only, which a busy machine may take between them.
    const toSessions = async () => {
      await keyboard.press('g')
      await keyboard.press('s')
      return page.url()
    }
    await expect.poll(toSessions).toMatch(/#\/sessions$/)
    const sessions = page.getByRole('list', { name: 'Sessions' }).getByRole('listitem')
    await expect.poll(() => sessions.count()).toBe(3)
    await keyboard.press('/')
    await keyboard.type('order')
    await expect.poll(() => sessions.count()).toBe(1)
    await keyboard.press('Escape')
    await keyboard.press('j')
    await keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Where is order 42?' }).waitFor()
    await page.locator('.fact').first().waitFor()
    await keyboard.press('j')
    await keyboard.press('j')
    await keyboard.press('Enter')
    await page.locator('.fact[open]').waitFor()
    await keyboard.press('k')
    expect(await page.evaluate('document.activeElement.closest("details").className')).toBe('turn')
    await keyboard.press('Escape')
    await expect.poll(() => page.url()).toMatch(/#\/sessions$/)
  })

  it.each([
    ['light', 400],
    ['dark', 400],
    ['light', 2000],
    ['dark', 2000],
  ] as const)('fits a %s screen of %i pixels, with text that can be read', async (colorScheme, width) => {
    await using visited = await open('', { colorScheme, viewport: { width, height: 900 } })
    const { page, browserErrors } = visited
    const { plain, approval, hostile } = stage.sessions
    const hashes = [
      '',
      'sessions',
      `sessions/${plain}`,
      `sessions/${approval}`,
      `sessions/${hostile}`,
      'actions',
      'deliveries',
      'handlers',
    ]
    for (const [n, hash] of hashes.entries()) {
      await page.goto(`${stage.url}#/${hash}`)
      await page.locator('main :is(h1, h2)').first().waitFor()
      await page.locator('[data-item]').first().waitFor()
      // The page itself never scrolls: its main part does.
      expect(
        await page.evaluate("document.querySelector('main').scrollWidth - innerWidth"),
      ).toBeLessThanOrEqual(0)
      expect(await page.evaluate(LEAST_CONTRAST)).toBeGreaterThanOrEqual(4.5)
      const folder = process.env['SCREENSHOTS']
      if (folder !== undefined) await page.screenshot({ path: `${folder}/${n}-${colorScheme}-${width}.png` })
    }
    expect(browserErrors).toEqual([])
  })

  it('retries one delivery, then all dead letters after it counted them', async () => {
    await using visited = await open('#/deliveries?status=dead&handler=audit')
    const { page } = visited
    const rows = page.getByRole('listitem')
    await expect.poll(() => rows.count()).toBe(2)
    await rows.first().getByText('2 attempts: 500, {"error":"the <b>ledger</b> is closed"}').waitFor()
    stage.rig.app.handle = () => ({})
    await rows.first().getByRole('button', { name: 'Retry' }).click()
    await page.getByText('turn.settled will be sent to audit again.').waitFor()
    await expect.poll(() => rows.count()).toBe(1)

    await page.getByRole('button', { name: 'Retry dead letters …' }).click()
    const dialog = page.getByRole('dialog', { name: 'Retry dead letters' })
    await dialog.getByText('1 dead letter of audit.').waitFor()
    expect(await stage.rig.list('/api/deliveries?status=dead')).toHaveLength(1)
    await dialog.getByRole('button', { name: 'Retry 1 delivery' }).click()
    await page.getByText('1 dead letter will be sent again.').waitFor()
    await page.getByText('No dead letters.').waitFor()
    await page.getByLabel('Status').selectOption('delivered')
    await expect.poll(() => rows.count()).toBe(2)
    await rows.first().getByText('3 attempts: 200').waitFor()
  })

  it('shows changes without a reload', async () => {
    await using list = await open('#/sessions')
    await using inbox = await open('#/actions')
    await list.page.getByText('Where is order 42?').waitFor()
    const people = inbox.page.getByRole('region', { name: 'For a person' })
    await people.getByText('Clean the build').waitFor()
    const { client, emulator } = stage.rig
    await client.create({ title: 'Just now' })
    await list.page.getByRole('listitem').first().getByText('Just now').waitFor()
    const [action] = await stage.rig.list('/api/actions')
    emulator.resolveAction(String(action?.['call_id']), { approved: true })
    await people.getByText('No action waits for a person.').waitFor()
    await list.page.getByRole('listitem').filter({ hasText: 'Clean the build' }).getByText('idle').waitFor()
    expect([...list.browserErrors, ...inbox.browserErrors]).toEqual([])
  })

  it('shows that the sidecar is unreachable, and continues by itself afterwards', async () => {
    await using visited = await open()
    const { page } = visited
    await page.getByRole('heading', { name: 'Channels' }).waitFor()
    await stage.rig.stop()
    await page.getByText('The sidecar has not answered for').waitFor()
    expect(await page.getByRole('heading', { name: 'Channels' }).isVisible()).toBe(true)
    await stage.rig.start()
    await page.getByText('The sidecar has not answered for').waitFor({ state: 'detached', timeout: 15_000 })
  })
})

/** The least contrast of any text with what is behind it (WCAG), by the colours that the browser computed. */
const LEAST_CONTRAST = `(() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number)
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0)
  const behind = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor)
      if (colour.length === 3 || colour[3] > 0) return light(colour)
    }
    return 1
  }
  const all = [...document.querySelectorAll('#app *')].filter((element) =>
    !element.disabled && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== ''))
  return Math.min(...all.map((element) => {
    const [a, b] = [light(channels(getComputedStyle(element).color)), behind(element)].sort((x, y) => y - x)
    return (a + 0.05) / (b + 0.05)
  }))
})()`
