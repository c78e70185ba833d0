import { subscribe } from 'node:diagnostics_channel'
import { Session, type Debugger, type Profiler } from 'node:inspector'
import { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import Database from 'better-sqlite3'

/**
 * Loaded into the real program before anything of it (`node --import`): V8 counts the calls of each function, and those
 * of one window, from an event's beginning to its end, are sent to the test.
 */

/** What a window ends with. */
export type End = 'callback' | 'state fact' | 'answer'

/** What the test asks. */
export type Order =
  /** Records one window; answers `armed`, maybe `waiting`, then `recorded`. */
  | { record: End; answerEnding: string }
  /** From now on the order of calls is kept, of these functions; answers `tracing`. */
  | { trace: readonly string[] }

/** Functions are named `path below src:offset:name`. */
export type Report =
  | { armed: true }
  /** The tool of a call has been asked, and nothing else is under way. */
  | { waiting: true }
  | { tracing: number }
  /** `functions`: called within the window. `hits`: traced ones, in the order of calls. */
  | { recorded: readonly string[]; hits: readonly Hit[] }
  | { fault: string }

export interface Hit {
  name: string
  /** Files of src on the stack below it, innermost first. */
  below: readonly string[]
}

interface Armed {
  end: End
  answerEnding: string
  /** Whether what runs now belongs to the window. */
  open: boolean
  functions: Set<string>
}

const SRC = new URL('../../src/', import.meta.url).href
/** Nothing is under way any more once no function of src ran for so long, milliseconds. */
const QUIET = 60
/** Times that this is waited for. */
const LOOKS = 200
/** The first line of a request that counts is shorter, bytes. */
const START_MAX = 1024
/** Frames of a stack that are looked at. */
const DEEPEST = 100

const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

let armed: Armed | null = null
let hits: Hit[] = []

/** What was called since this was asked last. */
function takeCalls(): string[] {
  let scripts: Profiler.ScriptCoverage[] = []
  session.post('Profiler.takePreciseCoverage', (error, taken) => {
    if (error !== null) throw error
    scripts = taken.result
  })
  return scripts
    .filter(({ url }) => url.startsWith(SRC))
    .flatMap(({ url, functions }) =>
      functions.flatMap(({ functionName, ranges: [range] }) =>
        // A module's own code, from its first character on, is a function to V8.
        range === undefined || range.count === 0 || range.startOffset === 0
          ? []
          : [`${url.slice(SRC.length)}:${range.startOffset}:${functionName}`],
      ),
    )
}

function open(): void {
  if (armed === null || armed.open) return
  takeCalls()
  armed.open = true
}

function shut(): void {
  if (armed === null || !armed.open) return
  armed.open = false
  for (const name of takeCalls()) armed.functions.add(name)
}

function finish(): void {
  if (armed === null || !armed.open) return
  shut()
  report({ recorded: [...armed.functions], hits })
  armed = null
  hits = []
}

async function quiet(): Promise<void> {
  takeCalls()
  for (let look = 0; look < LOOKS; look++) {
    await pause(QUIET)
    if (takeCalls().length === 0) return
  }
  throw new Error('it is never quiet')
}

async function arm(end: End, answerEnding: string): Promise<void> {
  await quiet()
  armed = { end, answerEnding, open: false, functions: new Set() }
  // A frame comes on a connection that is open already: it may come from here on.
  if (end === 'callback') open()
  report({ armed: true })
}

// A webhook's window opens with the head of its request.
subscribe('http.server.request.start', (event) => {
  const { request } = event as { request: { method?: string } }
  if (armed?.end === 'state fact' && request.method === 'POST') open()
})

// A callback and an answer have left when they are written.
const { write } = Socket.prototype
Socket.prototype.write = function (this: Socket, ...args: unknown[]): boolean {
  const written: unknown = Reflect.apply(write, this, args)
  const [chunk] = args
  if (armed !== null && chunk instanceof Uint8Array) sent(armed, chunk)
  return written === true
}

/**
 * The window of a call is shut while its tool runs: the read that found the call goes on meanwhile, and is no part of it. The
 * tool answers on a connection that is open already: its answer may come from the report on.
 */
function sent({ end, answerEnding }: Armed, chunk: Uint8Array): void {
  const start = Buffer.from(chunk.subarray(0, START_MAX)).toString('latin1')
  const [, path] = /^POST (\S+) /.exec(start) ?? []
  if (path === undefined) return
  if (end === 'callback' && path.startsWith('/events/')) finish()
  else if (end === 'answer' && path.endsWith(answerEnding)) finish()
  else if (end === 'answer' && path.startsWith('/tools/')) {
    shut()
    quiet().then(() => {
      open()
      report({ waiting: true })
    }, reportFault)
  }
}

// A state fact is there, and a call is known, once their commit is on disk.
const prepare = Database.prototype.prepare
Database.prototype.prepare = function prepareWatched(this: Database.Database, source: string) {
  const statement = prepare.call(this, source)
  if (source !== 'COMMIT') return statement
  const { run } = statement
  const runWatched = (...values: unknown[]): unknown => {
    const result: unknown = Reflect.apply(run, statement, values)
    committed(this)
    return result
  }
  return Object.assign(statement, { run: runWatched })
} as typeof prepare

let states = 0
let calls = 0

function committed(db: Database.Database): void {
  const count = (sql: string): number => Number(prepare.call(db, sql).pluck().get())
  const statesNow = count("SELECT count(*) FROM facts WHERE family = 'state'")
  const callsNow = count('SELECT count(*) FROM calls')
  if (armed?.end === 'state fact' && statesNow > states) finish()
  if (armed?.end === 'answer' && callsNow > calls) open()
  states = statesNow
  calls = callsNow
}

/** Breakpoints whose condition is never true do not stop; V8 evaluates it at each call. */
function trace(names: readonly string[]): void {
  const scripts = new Map<string, string>()
  session.on('Debugger.scriptParsed', ({ params }) => void scripts.set(params.url, params.scriptId))
  session.post('Debugger.enable')
  const hit = (name: string): void => {
    if (armed?.open === true) hits.push({ name, below: filesBelow() })
  }
  Object.assign(globalThis, { journeyHit: hit })
  for (const name of names) {
    const [path = '', offset = ''] = name.split(':')
    const scriptId = scripts.get(SRC + path)
    if (scriptId === undefined) throw new Error(`${path} is not loaded`)
    setBreakpoint(scriptId, Number(offset), name)
  }
  report({ tracing: names.length })
}

function setBreakpoint(scriptId: string, offset: number, name: string): void {
  let source = ''
  session.post('Debugger.getScriptSource', { scriptId }, (_error, { scriptSource }) => {
    source = scriptSource
  })
  const lines = source.slice(0, offset).split('\n')
  const start = { scriptId, lineNumber: lines.length - 1, columnNumber: lines.at(-1)?.length ?? 0 }
  let location: Debugger.Location | undefined
  session.post('Debugger.getPossibleBreakpoints', { start, restrictToFunction: true }, (_error, found) => {
    location = found.locations[0]
  })
  if (location === undefined) throw new Error(`${name} cannot be traced`)
  const condition = `journeyHit(${JSON.stringify(name)}), false`
  session.post('Debugger.setBreakpoint', { location, condition })
}

function filesBelow(): string[] {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = DEEPEST
  const lines = (new Error('stack').stack ?? '').split('\n')
  Error.stackTraceLimit = stackTraceLimit
  const files = lines.flatMap((line) => {
    const [, place] = line.split(SRC)
    return place === undefined ? [] : [place.replace(/:.*/, '')]
  })
  // First come the condition, which V8 places in the function, and the function itself.
  return files.slice(2)
}

function report(report: Report): void {
  process.send?.(report)
}

function reportFault(error: unknown): void {
  report({ fault: error instanceof Error ? error.message : String(error) })
}

process.on('message', (order: Order) => {
  if ('trace' in order) trace(order.trace)
  else arm(order.record, order.answerEnding).catch(reportFault)
})
