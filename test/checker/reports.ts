import type { Fault, Report, ServiceHistory } from './history.ts'

const ENDS = ['turn.completed', 'turn.failed', 'turn.ended']
const FINAL_ARTIFACTS = ['ready', 'partial', 'failed']
const STATE =
  /^(session\.(created|deleted|working|idle|requires_action|failed)|turn\.(started|completed|failed|ended|settled)|action\.(required|resolved)|call\.(answered|failed|not_delivered))$/

/** What a report is about, by its natural key (src/sidecar/README.md, Facts). */
export function naturalKey({ data, id, type, session_id: session }: Report): string {
  if (!STATE.test(type)) return transcriptKey(data, id)
  if (type.startsWith('turn.')) return `${ENDS.includes(type) ? 'turn.end' : type} ${data.turn?.id}`
  if (type.startsWith('action.')) return `${type} ${data.action?.call_id}`
  if (type.startsWith('call.')) return `call ${data.call?.call_id}`
  if (type === 'session.created' || type === 'session.deleted') return `${type} ${session}`
  return `${type} ${session} ${data.session?.updated_at}`
}

/** Without the stream, a transcript fact is an item. */
function transcriptKey({ seq, payload }: Report['data'], id: string): string {
  if (seq !== null && seq !== undefined) return `seq ${seq}`
  return typeof payload?.['id'] === 'string' ? `item ${payload['id']}` : `event ${id}`
}

/** I3: one id for one thing, and one thing for one id, over all attempts, restarts and channels. */
export function identities(reports: readonly Report[]): Fault[] {
  const ids = new Map<string, string>()
  const keys = new Map<string, string>()
  const faults = new Set<string>()
  for (const report of reports) {
    const key = naturalKey(report)
    const id = ids.get(key) ?? report.id
    const other = keys.get(report.id) ?? key
    if (id !== report.id) faults.add(`${key} came under ${id} and under ${report.id}`)
    if (other !== key) faults.add(`${report.id} means ${other} and ${key}`)
    ids.set(key, id)
    keys.set(report.id, other)
  }
  return [...faults].map((message) => ({ invariant: 'I3', message }))
}

/** I3: one content for one id, unless an older store was restored in between. */
export function contents(reports: readonly Report[]): Fault[] {
  const first = new Map<string, string>()
  return reports.flatMap((report) => {
    const content = contentOf(report)
    const before = first.get(report.id) ?? content
    first.set(report.id, before)
    if (before === content) return []
    return [{ invariant: 'I3', message: `${report.id} said ${before} and then ${content}` }]
  })
}

/** The same in every attempt. Beside a frame stands the summary of its session at the time of the attempt. */
function contentOf({ type, timestamp, session_id, data }: Report): string {
  return JSON.stringify([
    type,
    timestamp,
    session_id,
    data.payload === undefined ? data : { ...data, session: null },
  ])
}

/** I12, by session: the transcript by seq, state in causal order, a turn's end after its frame (test/README.md, Order). */
export function order(reports: readonly Report[]): Fault[] {
  const faults = new Set<string>()
  const first = new Map<string, number>()
  const highest = new Map<string, number>()
  const begun = new Map<string, number>()
  const seen = new Set<string>()
  const before = (earlier: string, later: string): void => {
    const a = first.get(earlier)
    const b = first.get(later)
    if (a !== undefined && b !== undefined && a > b) faults.add(`${later} came before ${earlier}`)
  }
  for (const [index, report] of reports.entries()) {
    if (seen.has(report.id)) continue
    seen.add(report.id)
    first.set(naturalKey(report), index)
    const { seq, turn } = report.data
    const session = String(report.session_id)
    if (report.type === 'turn.started') {
      const made = Number(turn?.['created_at'])
      if (made < (begun.get(session) ?? 0)) faults.add(`turn ${turn?.id} was reported after a newer one`)
      begun.set(session, made)
    }
    if (STATE.test(report.type) || typeof seq !== 'number') continue
    const last = highest.get(session) ?? 0
    if (seq < last) faults.add(`seq ${seq} of ${session} came after ${last}`)
    highest.set(session, Math.max(last, seq))
  }
  for (const { data, session_id, type } of reports) {
    if (data.turn !== undefined) {
      const { id } = data.turn
      before(`session.created ${session_id}`, `turn.started ${id}`)
      before(`turn.started ${id}`, `turn.end ${id}`)
      before(`turn.end ${id}`, `turn.settled ${id}`)
    }
    if (data.action !== undefined) {
      const { call_id, turn_id } = data.action
      before(`turn.started ${turn_id}`, `action.required ${call_id}`)
      before(`action.required ${call_id}`, `action.resolved ${call_id}`)
      before(`action.required ${call_id}`, `turn.end ${turn_id}`)
      before(`action.resolved ${call_id}`, `turn.end ${turn_id}`)
    }
    if (type === 'session.deleted') {
      for (const key of first.keys())
        if (key.endsWith(` ${session_id}`)) before(key, `session.deleted ${session_id}`)
    }
  }
  return [...faults].map((message) => ({ invariant: 'I12', message }))
}

/** I1: every event of the service's stream was reported, under its name and for its session. */
export function transcript({ events }: Pick<ServiceHistory, 'events'>, reports: readonly Report[]): Fault[] {
  const reported = new Map(
    reports.filter(({ type }) => !STATE.test(type)).map((report) => [report.data.seq, report]),
  )
  return events.flatMap(({ seq, type, session_id }) => {
    const report = reported.get(seq)
    const wrong = (message: string): Fault[] => [
      { invariant: 'I1', message: `seq ${seq} (${type}) ${message}` },
    ]
    if (report === undefined) return wrong('was not reported')
    const name = STATE.test(type) ? `stream.${type}` : type
    if (report.type !== name) return wrong(`was reported as ${report.type}`)
    return report.session_id === session_id ? [] : wrong(`was reported for session ${report.session_id}`)
  })
}

/** I1 and I7: every turn was reported, as it is. */
export function turns({ turns, sessions }: ServiceHistory, reports: readonly Report[]): Fault[] {
  const faults: Fault[] = []
  const gone = new Set(sessions.filter(({ deleted_at }) => deleted_at !== null).map(({ id }) => id))
  const reported = Map.groupBy(
    reports.filter(({ type }) => type.startsWith('turn.')),
    ({ data }) => data.turn?.id,
  )
  for (const turn of turns) {
    if (gone.has(turn.session_id)) continue
    const missing = (type: string): void =>
      void faults.push({ invariant: 'I1', message: `turn ${turn.id} (${turn.status}): no ${type}` })
    const wrong = (message: string): void =>
      void faults.push({ invariant: 'I7', message: `turn ${turn.id} (${turn.status}) ${message}` })
    const mine = reported.get(turn.id) ?? []
    const kinds = new Set(mine.map(({ type }) => type))
    const right = endOf(turn.status)
    if (!kinds.has('turn.started')) missing('turn.started')
    if (turn.completed_at !== null && !kinds.has(right)) missing(right)
    for (const { type, data } of mine.filter(({ type }) => ENDS.includes(type))) {
      if (turn.completed_at === null) wrong(`is under way and was reported as ${type}`)
      else if (type !== right || data.turn?.status !== turn.status)
        wrong(`was reported as ${type} (${data.turn?.status})`)
    }
    if (!FINAL_ARTIFACTS.includes(String(turn.artifacts))) continue
    const settled = mine.find(({ type }) => type === 'turn.settled')
    if (settled === undefined) missing('turn.settled')
    else if (settled.data.turn?.artifacts !== turn.artifacts)
      wrong(
        `was reported as settled with artifacts ${settled.data.turn?.artifacts}, which are ${turn.artifacts}`,
      )
  }
  return faults
}

export function endOf(status: string): string {
  return status === 'completed' || status === 'failed' ? `turn.${status}` : 'turn.ended'
}

/** I1: an action that began and ended between two reads makes no fact; a reported one must have its end reported. */
export function actions({ actions }: Pick<ServiceHistory, 'actions'>, reports: readonly Report[]): Fault[] {
  const reported = new Set(reports.map(({ type, data }) => `${type} ${data.action?.call_id}`))
  return actions.flatMap(({ call_id: id, resolved_at }) => {
    const required = reported.has(`action.required ${id}`)
    const resolved = reported.has(`action.resolved ${id}`)
    const wrong = (message: string): Fault[] => [{ invariant: 'I1', message: `action ${id} ${message}` }]
    if (resolved_at !== null) return required && !resolved ? wrong('has ended: no action.resolved') : []
    if (resolved) return wrong('is open and was reported as resolved')
    return required ? [] : wrong('is open: no action.required')
  })
}

/** What still goes on at the service: nothing is idle before that ends. */
export function underWay({ sessions, turns }: Pick<ServiceHistory, 'sessions' | 'turns'>): Fault[] {
  const alive = sessions.filter(({ deleted_at }) => deleted_at === null)
  const ids = new Set(alive.map(({ id }) => id))
  const messages = [
    ...alive.filter(({ status }) => status === 'working').map(({ id }) => `session ${id} is still working`),
    ...turns
      .filter(({ artifacts, session_id }) => artifacts === 'pending' && ids.has(session_id))
      .map(({ id }) => `turn ${id} still collects its artifacts`),
  ]
  return messages.map((message) => ({ invariant: 'rest', message }))
}
