import type { ListenAddress } from '../sidecar/config/listen.ts'
import { readSmallFile } from '../sidecar/config/secrets.ts'
import { select } from '../conform/catalogue.ts'
import { Receiver } from '../conform/receiver.ts'
import { conform as tryRules, type Report } from '../conform/run.ts'
import { messageOf, OperatorError } from '../std/errors.ts'
import { createHttp } from '../system/http.ts'
import { countStates, renderReport } from './conform/render.ts'
import type { Context } from './context.ts'
import { onSignals } from './signals.ts'
import { jsonLine } from './terminal.ts'

interface ConformOptions {
  baseUrl: string
  tokenFile: string
  write?: boolean
  only?: string
  parallel: number
  timeout?: number
  patience?: number
  webhookUrl?: string
  webhookListen?: ListenAddress
  verbose?: boolean
  json?: boolean
}

/** Milliseconds for a run, and for each task of the agent. */
const TIMEOUT = 600_000
const PATIENCE = 60_000
/** Bytes of a file with a token. */
const MAX_TOKEN_FILE = 64 * 1024

/**
 * Tries the rules of the interface on a deployment. The first SIGINT or SIGTERM ends the run, and
 * its resources are removed. A second one leaves them.
 */
export async function conform({ terminal }: Context, options: ConformOptions): Promise<number> {
  const baseUrl = addressOf(options.baseUrl, '--base-url')
  const only = options.only === undefined ? undefined : chosen(options.only)
  const token = await readToken(options.tokenFile)
  const interrupted = new AbortController()
  const offSignals = onSignals({ first: () => interrupted.abort(), second: () => process.exit(1) })
  const http = createHttp()
  const webhook = options.write === true ? await receive(baseUrl, options) : null
  try {
    const report = await tryRules({
      http,
      baseUrl,
      token,
      webhook,
      write: options.write === true,
      ...(only === undefined ? {} : { only }),
      parallel: options.parallel,
      timeout: options.timeout ?? TIMEOUT,
      patience: options.patience ?? PATIENCE,
      signal: interrupted.signal,
    })
    terminal.out(
      options.json === true
        ? jsonLine({ ...report, counts: countStates(report) })
        : renderReport(report, { terminal, verbose: options.verbose === true }),
    )
    return fine(report) ? 0 : 1
  } finally {
    offSignals()
    await Promise.all([http.close(), webhook?.receiver.close()])
  }
}

function fine(report: Report): boolean {
  return countStates(report).differs === 0 && report.left.length === 0 && report.ended === null
}

/** Deliveries can arrive from a deployment on this machine, or by way of a public address. */
async function receive(
  baseUrl: string,
  options: ConformOptions,
): Promise<{ receiver: Receiver; url: string } | null> {
  const { webhookUrl, webhookListen } = options
  const { hostname } = new URL(baseUrl)
  const local = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  if (webhookUrl === undefined && !local) return null
  const standard =
    webhookUrl === undefined ? { host: '127.0.0.1', port: 0 } : { host: '127.0.0.1', port: 8480 }
  const { host, port } = webhookListen ?? standard
  const receiver = await Receiver.listen(host, port)
  const url = webhookUrl ?? `http://127.0.0.1:${receiver.port}/webhooks`
  return { receiver, url: addressOf(url, '--webhook-url') }
}

function chosen(text: string): Set<string> {
  try {
    return select(text)
  } catch (error) {
    throw new OperatorError(
      `--only: ${messageOf(error)}; rules are named such as SES, SES-12 or SES-01..09`,
      2,
    )
  }
}

function addressOf(url: string, option: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url.replace(/\/+$/, '')
  throw new OperatorError(
    `${option}: "${url}" is not an http or https address`,
    2,
    'give one such as https://agents.example.com',
  )
}

async function readToken(file: string): Promise<string> {
  const text = await readSmallFile(file, MAX_TOKEN_FILE).catch((error: unknown) => {
    throw new OperatorError(`--token-file: ${messageOf(error)}`, 2)
  })
  const token = text.trim()
  // Other characters cannot be sent in a header.
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw new OperatorError(`--token-file: ${file} does not contain exactly one token`, 2)
}
