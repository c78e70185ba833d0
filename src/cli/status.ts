import { isObject, numberOf, stringOf, type JsonObject } from '../std/json.ts'
import { adminClient, timeOf, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { field } from './reply.ts'
import { grid, outline } from './status/outline.ts'
import { jsonLine, visible, type Terminal } from './terminal.ts'
import { asTyped } from './working-folder.ts'
import { count, span, stamp } from './text.ts'

interface StatusOptions extends AdminOptions {
  json?: boolean
  verbose?: boolean
}

/** The limit of the list: handlers are few. */
const ALL = 1000

interface Seen {
  status: JsonObject
  handlers: readonly JsonObject[]
  /** The problems that need attention. */
  needs: readonly JsonObject[]
  now: number
}

/** Fields with their own sections; all other fields are shown generically. */
const OWN = ['channels', 'replicas', 'queues', 'routes', 'throughput', 'discovery', 'needs_action']

export async function status({ terminal, env }: Context, options: StatusOptions): Promise<number> {
  const client = await adminClient(options, env)
  if (options.json === true) {
    terminal.out(jsonLine(await client.get('/api/status')))
    return 0
  }
  const [status, handlers, attention] = await Promise.all([
    client.get('/api/status'),
    client.list('/api/handlers', {}, ALL),
    client.get('/api/attention'),
  ])
  const seen = { status, handlers, needs: rowsOf(attention, 'data'), now: Date.now() }
  terminal.out(asTyped(`${render(seen, options.verbose === true, terminal).join('\n')}\n`, env))
  return 0
}

/** Prints what needs attention first, then the work under way, then rarely changing values. */
function render(seen: Seen, verbose: boolean, screen: Pick<Terminal, 'paint' | 'width'>): string[] {
  const { status, handlers, now } = seen
  const { paint } = screen
  const section = (title: string, lines: readonly string[]): string[] => [
    paint('bold', title),
    ...(lines.length > 0 ? lines : [`  ${paint('dim', 'none')}`]),
  ]
  const channels = Object.entries(isObject(status['channels']) ? status['channels'] : {}).flatMap(
    ([channel, state]) => (isObject(state) ? [{ channel, ...state }] : []),
  )
  const replicas = rowsOf(status, 'replicas')
  const rest = Object.fromEntries(Object.entries(status).filter(([key]) => !OWN.includes(key)))
  return [
    ...section(
      'needs attention',
      seen.needs.map((need) => lineOf(need, now, screen)),
    ),
    ...section('channels', channels.length === 0 ? [] : grid(channels, '  ', now, screen)),
    ...(replicas.length === 0 ? [] : section('replicas', grid(replicas, '  ', now, screen))),
    ...section('queues', outline(isObject(status['queues']) ? status['queues'] : {}, '  ', now, screen)),
    ...section('handlers', handlers.length === 0 ? [] : grid(handlers, '  ', now, screen)),
    ...throughput(rowsOf(status, 'throughput')),
    ...outline(rest, '', now, screen),
    ...discovered(status, verbose, now, screen),
  ]
}

function lineOf(need: JsonObject, now: number, { paint }: Pick<Terminal, 'paint'>): string {
  const mark = field(need, 'tone') === 'bad' ? paint('red', '✗') : paint('yellow', '!')
  const since = timeOf(need['since'])
  const age = since === null ? '' : ` for ${span(Math.max(0, now - since))}`
  const detail = stringOf(need['detail'])
  const text = `${field(need, 'what')}${age}${detail === null ? '' : `: ${detail}`}`
  return `  ${mark} ${visible(text)}  ${paint('dim', `→ ${visible(field(need, 'advice'))}`)}`
}

/** The entries of a list of the answer. */
function rowsOf(answer: JsonObject, key: string): JsonObject[] {
  const rows = answer[key]
  return Array.isArray(rows) ? rows.filter(isObject) : []
}

/**
 * The sums over the minutes of the last hour. The first minute may have begun before the sidecar started, so the line
 * says since when they are.
 */
function throughput(minutes: readonly JsonObject[]): string[] {
  const [first] = minutes
  if (first === undefined) return []
  const sum = (key: string): number =>
    minutes.reduce((total, minute) => total + (numberOf(minute[key]) ?? 0), 0)
  const parts = [
    count(sum('facts'), 'fact'),
    `${sum('delivered')} delivered`,
    count(sum('failed'), 'failed attempt'),
    count(sum('calls'), 'call'),
  ]
  return [
    `throughput  ${parts.join(', ')} since ${stamp(timeOf(first['at'])).slice(0, 'YYYY-MM-DD HH:MM'.length)}`,
  ]
}

/**
 * The parts of the service's description. By default only the absent ones, since their absence has
 * a consequence.
 */
function discovered(
  status: JsonObject,
  verbose: boolean,
  now: number,
  screen: Pick<Terminal, 'paint' | 'width'>,
): string[] {
  const list = (title: string, isAbsent: (row: JsonObject) => boolean): string[] => {
    const all = rowsOf(status, title)
    if (all.length === 0) return []
    if (verbose) return [screen.paint('bold', title), ...grid(all, '  ', now, screen)]
    const absent = all.filter(isAbsent)
    const hint = screen.paint('dim', '(--verbose lists them)')
    const counted = `${title}  ${all.length - absent.length} of ${all.length} found ${hint}`
    return absent.length === 0 ? [counted] : [counted, ...grid(absent, '  ', now, screen)]
  }
  return [
    ...list('discovery', ({ found }) => found === null),
    ...list('routes', ({ how }) => how === 'missing'),
  ]
}
