/** What may go wrong outside of us, and what must come of it. */
export interface Fault {
  /** Tests cite it: stable, never given again. */
  id: string
  fault: string
  mustFollow: string
}

const of = (group: string, faults: readonly (readonly [fault: string, mustFollow: string])[]): Fault[] =>
  faults.map(([fault, mustFollow], index) => ({ id: `${group}-${index + 1}`, fault, mustFollow }))

/** The whole catalogue. New faults go to the end of their group. */
export const FAULTS: readonly Fault[] = [
  ...of('stream', [
    ['a crash between a fact and its checkpoint', 'both are there or neither'],
    ['a cursor that the service cannot place', 'logged, states read again, nothing delivered twice'],
    ['a replay that stops at its limit, several times', 'continues where it stopped, and is not treated as live'],
    ['a transient frame', 'is not stored and moves no cursor'],
    ['the service hangs up because we are 8 MiB behind', 'the next connection goes on at the last commit'],
    ['`retry:` of 0, 2000, 8000, 10^12 or none', 'a floor for the wait, a minute at the most'],
    ['a connection that is half open', 'dead after 45 s of silence'],
    ['a stream of nothing but pings', 'alive'],
    ['frames cut at any byte, CRLF, a byte order mark', 'the same facts'],
    ['a line without end', 'cut at 16 MiB, and given up at 256; counted'],
    ['a seq twice or backwards', 'reported once; the cursor is the highest'],
    ['a seq above 2^53', 'exact to the digit'],
    ['an unknown event', 'stored and passed on'],
    ['a frame that cannot be read', 'kept with its bytes; the cursor goes on'],
    ['429 before the stream opens', 'waits for `Retry-After`'],
  ]),
  ...of('auth', [
    ['401', 'no more requests, other work continues, and requests resume when the token file changes'],
    ['503 directory_unavailable', 'waited for, and no 401'],
    ['403', 'names the scope, and stops what needs it alone'],
    ['rate_limit_exceeded', 'waits; the other bucket goes on'],
    ['project_limit_exceeded', 'is not tried again'],
    ['a 502 in HTML, or an unknown code', 'its status decides; the request id is kept'],
  ]),
  ...of('webhook', [
    ['the same delivery a thousand times at once', 'one hint'],
    ['deliveries in reverse', 'the resource decides'],
    ['a signature forged, cut, in capitals, doubled, or not hex', '401 before anything is parsed'],
    ['a timestamp six minutes off, or in seconds', '401, counted as stale'],
    ['clocks that disagree', '`check` warns, and a metric shows it'],
    ['a secret that rotates', 'the old and the new one are taken'],
    ['409 on subscribing', 'the subscription that exists is replaced'],
    ['a subscription that is inactive or gone', 'noticed by the next look, made again, states read again'],
    ['a store that is full', '503, so that the sender tries again'],
  ]),
  ...of('state', [
    ['a turn ends while its artifacts are pending', '`turn.completed` now, `turn.settled` when they are final'],
    ['artifacts that are pending for ever', '`turn.settled` does not lie; a metric shows the age'],
    ['required_actions disagrees with the events', 'the resource decides'],
    ['an unknown status', '`turn.ended` or passed on, never a guess'],
    ['a session deleted under way', '`session.deleted`; its calls are cancelled'],
    ['a run that fails without a turn', '`session.failed` with the item that says why'],
    ['the row of a page cursor is gone', 'an empty page is no end: the list is begun again'],
    ['the service is unreachable for an hour', 'nothing lost, and no storm when it is back'],
  ]),
  ...of('tool', [
    ['a crash after a tool ran and before its result is stored', 'the same key, `uncertain: true`'],
    ['a crash after the result is stored and before it is posted', 'posted, not run again'],
    ['an answer whose reply is lost', 'the actions are read again; the same body'],
    ['not_delivered', 'as the policy says, and not waited for'],
    ['an unknown outcome', 'the actions are read again'],
    ['the deadline passes while a tool runs', 'stopped, the fixed error, a late result kept'],
    ['one call reported by three channels', 'one row'],
    ['a tool that throws a secret', 'the model sees the fixed text'],
    ['a result over 1 MiB', 'the fixed error; the others are not touched'],
  ]),
  ...of('callback', [
    ['a handler that is slow', 'cut at its timeout; the others keep nine tenths of their pace'],
    ['410', 'the handler is paused'],
    ['a redirect', 'is not followed'],
    ['an answer of 1 GiB', '64 KiB are read, then the connection is closed'],
    ['a reset on a connection that was kept', 'tried again under the same key'],
    ['a handler unreachable for 30 days', 'the backlog is whole, nothing is dead, memory is flat'],
    ['one session that always fails', 'holds up its own lane alone'],
    ['2,000 transient events of one session', 'delay no fact'],
    ['SIGKILL during an attempt that is 50 ms old or older', 'it is shown after the restart, and the next has the next number'],
  ]),
  ...of('http', [
    ['an answer that cannot be read: too long a head, cut off, folded headers, two lengths', 'a failed attempt with its reason; the handler is not down'],
    ['1xx that the request did not ask for', 'skipped, but for 101, which is an answer that cannot be read'],
    ['a TLS handshake that fails', 'nothing was sent'],
    ['TLS that fails after the request left', 'it may have arrived'],
  ]),
  ...of('process', [
    ['SIGTERM during a delivery', 'no new claims, what is under way ends, exit 0'],
    ['a second signal', 'ends it at once'],
    ['SIGKILL at any moment', 'every invariant holds'],
    ['an unhandled rejection', 'logged, exit 1, and recovered from at the next start'],
    ['an event loop that stands for a minute', 'nothing is claimed twice, nothing dies of it'],
    ['a full disk', 'rolled back, webhooks get 503, and work continues when there is space'],
    ['a database that is damaged or of a newer version', 'refused by name and left alone'],
    ['a wall clock that jumps by an hour', 'no burst, and nothing expires early'],
    ['two that both think they lead', 'one of them may not write'],
  ]),
  ...of('operator', [
    ['a store that lies where an earlier version kept it', 'no empty store is begun; the command to move it is shown'],
  ]),
] // prettier-ignore
