import path from 'node:path'
import type { Browser } from 'playwright-core'
import { hasBrowser, openBrowser, visit } from '../../console/browser.ts'
import { FIRST_PAINT, scrollThrough } from '../../console/pace.ts'
import { fillStore } from '../fill.ts'
import { milliseconds, type Figures } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { median } from '../statistics.ts'
import { Subject } from '../subject.ts'

const PAINT = 'console, first paint'
const PACE = 'console, scrolling'
const SESSIONS = 10_000
/** Height of a row in the console, pixels. */
const ROW = 44
const PAINTS = 3

/**
 * The page of all sessions in a browser that is open. The baseline is what the machine can: the paint of two letters, and
 * an empty box of the same height scrolled in the same way.
 */
export const consolePages: Scenario = {
  measures: [
    milliseconds(PAINT, 300),
    {
      name: PACE,
      unit: 'frames/s',
      digits: 1,
      judge: (ours, baseline) => ours / baseline,
      judged: '# × an empty box',
      floor: { at: 'least', value: 0.95 },
    },
  ],
  async open(bench) {
    if (!hasBrowser) throw new Error('there is no browser here (apt-get install chromium)')
    const folder = bench.folder()
    const sessions = bench.scaled(SESSIONS)
    await fillStore(path.join(folder, 'store.db'), sessions, sessions, 1)
    const subject = bench.use(
      await Subject.start(folder, {
        service: { base_url: 'http://127.0.0.1:9', token: 'svc_pat_bench' },
        polling: { enabled: false },
      }),
    )
    const browser = await openBrowser()
    bench.use({ [Symbol.asyncDispose]: () => browser.close() })
    const page = `${subject.adminUrl}/#/sessions`
    // The first visit compiles everything; what counts is a browser that is open.
    await paintOf(browser, page)
    return {
      async ours() {
        await using visited = await visit(browser, page)
        await visited.page.locator('.row').first().waitFor()
        return { [PAINT]: await paintOf(browser, page), [PACE]: await paceOf(visited.page, sessions) }
      },
      async baseline() {
        await using visited = await visit(browser, 'about:blank')
        await visited.page.setContent(
          `<div class="window" style="height: 800px; overflow: auto"><div style="height: ${sessions * ROW}px"></div></div>`,
        )
        return {
          [PAINT]: await paintOf(browser, `${subject.adminUrl}/livez`),
          [PACE]: await paceOf(visited.page, sessions),
        } satisfies Figures
      },
    }
  },
}

async function paintOf(browser: Browser, url: string): Promise<number> {
  const paints: number[] = []
  await using visited = await visit(browser, url)
  while (paints.length < PAINTS) {
    await visited.page.reload()
    paints.push(Number(await visited.page.evaluate(FIRST_PAINT)))
  }
  return median(paints)
}

async function paceOf(page: { evaluate(script: string): Promise<unknown> }, rows: number): Promise<number> {
  const { times } = (await page.evaluate(scrollThrough(rows))) as { times: number[] }
  return (1000 * times.length) / times.reduce((sum, ms) => sum + ms, 0)
}
