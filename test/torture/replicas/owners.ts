import { alone, inTurn, warned, type Act } from '../../checker/owners.ts'
import type { Fault } from '../../checker/history.ts'
import type { Replica } from './replica.ts'
import type { ReplicaWorld } from './world.ts'

/** What happens to a line or a process is noticed so late, milliseconds. */
const AROUND = 100

/** I8, by what the application and the service saw. */
export function owned(world: ReplicaWorld): Fault[] {
  const { app, gateway, service } = world
  const ownerOf = (host: string | undefined): string => nameOf(world.replicaAt(host))
  const callbacks = app.callbacks.map(({ name, events, headers, at, endedAt }): Act => ({
    // A fact without a session is of no order with others.
    subject: `${name} ${events[0]?.session_id ?? events[0]?.id}`,
    owner: ownerOf(headers.host),
    from: at,
    until: endedAt,
  }))
  const runs = app.runs.map(({ call, headers, at, endedAt, answered }) => ({
    subject: call.call_id,
    owner: ownerOf(headers.host),
    from: at,
    until: endedAt,
    uncertain: call.uncertain,
    answered,
  }))
  const end = service.details.paths.answer.replace(/^.*\}/, '')
  const answers = gateway.passed.filter(({ method, path }) => method === 'POST' && path.endsWith(end))
  const postings = answers.map(({ path, headers, at, endedAt }): Act => ({
    subject: path,
    owner: ownerOf(headers.host),
    from: at,
    until: endedAt,
  }))
  count(world, runs, 'calls run by two replicas')
  count(world, callbacks, 'sessions served by two replicas')
  count(world, postings, 'sessions answered by two replicas')
  return [
    ...alone(callbacks, (earlier, later) => isExcused(world, 'app', [earlier, later])),
    ...inTurn(
      callbacks.map((act) => ({ ...act, owner: `${act.owner}${lifeAt(world, act)}` })),
      (other, again) => mayHaveComeBack(world, other, again),
    ),
    ...warned(runs),
    ...alone(postings, (earlier, later) => isExcused(world, 'service', [earlier, later])),
  ]
}

function nameOf(replica: Replica | undefined): string {
  return replica === undefined ? 'none' : `replica ${replica.number}`
}

function replicaOf({ replicas }: ReplicaWorld, { owner }: Act): Replica | undefined {
  const name = owner.split(',', 1)[0]
  return replicas.find((replica) => name === nameOf(replica))
}

/** A replica that is killed and started again is another process: it ends the leases of the one before at once. */
function lifeAt(world: ReplicaWorld, act: Act): string {
  const at = performance.timeOrigin + act.from
  const life = replicaOf(world, act)?.sidecar.lives.findLast(({ from }) => from <= at)
  return life === undefined ? '' : `, life ${life.number}`
}

/** The earlier one stood still, or its line hid that it had hung up. */
function isExcused(
  world: ReplicaWorld,
  line: 'app' | 'service',
  [earlier, later]: readonly [Act, Act],
): boolean {
  const from = performance.timeOrigin + earlier.from - AROUND
  const until = performance.timeOrigin + later.from + AROUND
  const replica = replicaOf(world, earlier)
  return replica?.wasFrozen(from, until) === true || replica?.links[line].quiet(from, until) === false
}

/** The other one's life ended, or the request was held up on its way. A clean stop hands its sessions over before it ends. */
function mayHaveComeBack(world: ReplicaWorld, other: Act, again: Act): boolean {
  const [from, until] = [performance.timeOrigin + other.from, performance.timeOrigin + again.from]
  const lives = replicaOf(world, other)?.sidecar.lives ?? []
  const ended = lives.some(
    (life) =>
      life.until !== null && life.until > from - AROUND && (life.stoppedAt ?? life.until) < until + AROUND,
  )
  return ended || isExcused(world, 'app', [again, again])
}

function count({ tally }: ReplicaWorld, acts: readonly Act[], name: string): void {
  const shared = Map.groupBy(acts, ({ subject }) => subject)
    .values()
    .filter((all) => new Set(all.map(({ owner }) => owner)).size > 1)
  tally.add(name, [...shared].length)
}
