import type { Context } from '../context.ts'
import { jsonLine, type Terminal } from '../terminal.ts'
import { asTyped } from '../working-folder.ts'
import { adviceOn, answerOf, type Advice } from './advice.ts'
import type { OwnApp } from './own-app.ts'
import { renderRecord, renderTitles, SHORT_ID } from './printer.ts'
import type { CallbackDone, DevRecord, FactSeen, RunFailed } from './record.ts'

/** Where the requests come from and go to. */
export interface Forwarding {
  service: string
  /** Of the emulator, for the user's own requests; null: the real service. */
  token: string | null
  /** The sidecar's console; `usual`: the commands find it by themselves. */
  admin: { url: string; usual: boolean }
  /** More to say at the start, a line each. */
  hints: readonly string[]
}

/** The output while requests go to the user's own app. */
export interface AppShow {
  started(forwarding: Forwarding): void
  record(record: DevRecord): void
  note(advice: Advice): void
}

/** For people: a line for each request with the status of the app; cause and fix once for each cause. */
export function showApp({ terminal, env }: Context, app: OwnApp): AppShow {
  const { paint, width } = terminal
  const screen = { start: null, width, paint }
  /** Causes that were shown, by target; a success removes them. */
  const shown = new Map<string, string>()
  const note = ({ cause, fix }: Advice): void =>
    terminal.out(`  ${paint('yellow', '!')} ${cause}\n    ${paint('dim', 'fix:')} ${asTyped(fix, env)}\n`)

  /** While the app does not listen, every attempt fails for the same reason: only the first is shown. */
  const isNew = (record: CallbackDone | RunFailed, target: string, cause: string | undefined): boolean =>
    answerOf(record).status !== null || cause === undefined || shown.get(target) !== cause

  /** The option `--url` for printed commands that would not find the sidecar by themselves; otherwise empty. */
  let address = ''
  /** Records that came before the start was reported. */
  let early: DevRecord[] | null = []
  return {
    started(forwarding) {
      const { url, usual } = forwarding.admin
      address = usual ? '' : ` --url ${url}`
      terminal.out(`${startText(forwarding, app, paint)}\n${renderTitles(screen)}\n`)
      const waiting = early ?? []
      early = null
      for (const record of waiting) this.record(record)
    },
    record(record) {
      if (early !== null) return void early.push(record)
      if (record.kind === 'fact') return
      const target = targetOf(record)
      const advice = record.kind === 'tool' || isAccepted(record) ? null : adviceOn(record, app, address)
      if (record.kind === 'tool' || isNew(record, target, advice?.cause))
        terminal.out(`${renderRecord({ ...record, session: record.session.slice(0, SHORT_ID) }, screen)}\n`)
      if (advice === null) shown.delete(target)
      else {
        if (![...shown.values()].includes(advice.cause)) note(advice)
        shown.set(target, advice.cause)
      }
    },
    note,
  }
}

/** For programs: one JSON object per line, with its `kind`. */
export function showAppToPrograms(terminal: Terminal, app: OwnApp): AppShow {
  const line = (value: object): void => terminal.out(jsonLine(value))
  const { url, tools, secretFile } = app
  return {
    started: ({ service, token, admin }) =>
      line({ kind: 'started', service, token, admin: admin.url, app: url, tools, secret_file: secretFile }),
    record: (record) => line(record.kind === 'run' ? runLine(record) : record),
    note: (advice) => line({ kind: 'note', ...advice }),
  }
}

function runLine({ kind, at, session, report }: RunFailed): object {
  const { tool: name, outcome, status, error, seconds, attempt } = report
  return { kind, at, name, session, outcome, status, error, ms: seconds * 1000, attempt }
}

/** The function; empty for callbacks. */
function targetOf(record: Exclude<DevRecord, FactSeen>): string {
  if (record.kind === 'run') return record.report.tool
  return record.kind === 'tool' ? record.name : ''
}

function isAccepted(record: CallbackDone | RunFailed): boolean {
  const { outcome } = answerOf(record)
  return outcome === 'delivered' || outcome === 'deferred'
}

/** The line that verifies a callback or a function call, to paste into a request handler. */
const VERIFY = {
  node: "const { createHmac, timingSafeEqual } = process.getBuiltinModule('node:crypto'), { headers } = request, right = Buffer.from('v1,' + createHmac('sha256', Buffer.from(process.env.CALLBACK_SECRET.slice(6), 'base64')).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`).update(body).digest('base64')), genuine = (headers['webhook-signature'] ?? '').split(' ').map((one) => Buffer.from(one)).some((one) => one.length === right.length && timingSafeEqual(one, right))",
  python:
    'import base64, hmac, os; right = b"v1," + base64.b64encode(hmac.digest(base64.b64decode(os.environ["CALLBACK_SECRET"][6:]), f"{headers.get(\'webhook-id\')}.{headers.get(\'webhook-timestamp\')}.".encode() + body, "sha256")); genuine = any(hmac.compare_digest(right, one.encode()) for one in (headers.get("webhook-signature") or "").split())',
}

function startText(
  { service, token, admin, hints }: Forwarding,
  app: OwnApp,
  paint: Terminal['paint'],
): string {
  const rows: [name: string, value: string, about: string][] = [
    ['service', service, token === null ? 'from now on' : `emulated; token ${token}`],
    ['sidecar', admin.url, 'console, API and metrics'],
    ['callbacks', `POST ${app.url}`, app.events.includes('*') ? 'events of all types' : app.events.join(' ')],
    ...Object.entries(app.tools).map(([name, url]): [string, string, string] => [
      'tools',
      `POST ${url.replace('{name}', 'NAME')}`,
      name === '*' ? 'calls of the function NAME' : `calls of ${name}`,
    ]),
  ]
  const longest = Math.max(...rows.map(([, value]) => value.length))
  return [
    '\n',
    ...rows.map(
      ([name, value, about]) =>
        `  ${paint('bold', name.padEnd(9))}  ${paint('cyan', value.padEnd(longest))}  ${paint('dim', about)}\n`,
    ),
    `\n  Requests are signed with the secret in ${app.secretFile}, the same in every run:\n`,
    `    export CALLBACK_SECRET=${app.secret}\n`,
    `  Begin your request handler with this line. It sets ${paint('bold', 'genuine')} to true if the request is from the sidecar; ` +
      `${paint('bold', 'body')} must be the raw body:\n`,
    `    ${paint('dim', '# Node')}\n    ${VERIFY.node}\n    ${paint('dim', '# Python')}\n    ${VERIFY.python}\n`,
    ...hints.map((hint) => `  ${hint}\n`),
  ].join('')
}
