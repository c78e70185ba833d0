import { existsSync } from 'node:fs'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'

/** Debian's package `chromium`. */
const EXECUTABLE = '/usr/bin/chromium'

export const hasBrowser = existsSync(EXECUTABLE)
if (!hasBrowser) {
  process.stderr.write(
    'the console is NOT tried in a browser: there is none here (apt-get install chromium)\n',
  )
}

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Milliseconds that a test waits for something to be seen. */
const PATIENCE = 8000

export async function openBrowser(): Promise<Browser> {
  return await chromium.launch({ executablePath: EXECUTABLE, args: FLAGS })
}

export interface Visit extends AsyncDisposable {
  page: Page
  /** What the browser reported: errors of scripts, refusals by the policy, failed loads. */
  browserErrors: string[]
}

/** A fresh browser profile with one page on `url`. */
export async function visit(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(PATIENCE)
  const browserErrors: string[] = []
  page.on('pageerror', (error) => browserErrors.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error') browserErrors.push(message.text())
  })
  await page.goto(url)
  return { page, browserErrors, [Symbol.asyncDispose]: () => context.close() }
}
