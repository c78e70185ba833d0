import { describe, expect, it } from 'vitest'
import { newCall, type Call } from '../../src/core/call.ts'
import {
  stageOf,
  transition,
  TRANSITIONS,
  type CallEvent,
  type CallStage,
} from '../../src/core/call-machine.ts'

const RECEIVED = newCall({
  callId: 'call_1',
  sessionId: 'ses_1',
  turnId: 'trn_1',
  name: 'lookup',
  action: { arguments: {} },
  createdAt: 1,
  expiresAt: null,
  receivedAt: 1,
})
const RESULT = { kind: 'output', text: '42' } as const
const FINISHED: Call = { ...RECEIVED, state: 'finished', attempts: 1, result: RESULT, finishedAt: 2 }

/** A call in each stage. */
const CALLS: Record<CallStage, Call> = {
  received: RECEIVED,
  running: { ...RECEIVED, state: 'running', attempts: 1, startedAt: 1 },
  deferred: { ...RECEIVED, state: 'running', attempts: 1, startedAt: 1, deferred: true },
  finished: FINISHED,
  unconfirmed: { ...FINISHED, posts: 1, unsure: true },
  refused: { ...FINISHED, outcome: 'refused' },
  refused_unconfirmed: { ...FINISHED, outcome: 'refused', posts: 1, unsure: true },
  accepted: { ...FINISHED, outcome: 'delivered' },
  undelivered: { ...FINISHED, outcome: 'not_delivered' },
  resent: { ...FINISHED, outcome: 'not_delivered', posts: 1, unsure: true },
  answered: { ...FINISHED, state: 'answered', outcome: 'delivered', endedAt: 3 },
  not_delivered: { ...FINISHED, state: 'not_delivered', outcome: 'not_delivered', endedAt: 3 },
  failed: { ...FINISHED, state: 'failed', outcome: 'expired', endedAt: 3 },
}

const EVENTS: { [Type in CallEvent['type']]: Extract<CallEvent, { type: Type }> } = {
  run_begun: { type: 'run_begun', at: 5 },
  run_begun_again: { type: 'run_begun_again', at: 5 },
  run_withdrawn: { type: 'run_withdrawn' },
  run_failed: { type: 'run_failed', error: 'no', uncertain: true },
  run_deferred: { type: 'run_deferred' },
  result_fixed: { type: 'result_fixed', result: RESULT, error: null, at: 5 },
  app_answered: { type: 'app_answered', result: RESULT, at: 5 },
  app_awaited: { type: 'app_awaited' },
  post_put_off: { type: 'post_put_off', error: 'no', counted: true },
  post_unanswered: { type: 'post_unanswered', error: 'no' },
  post_refused: { type: 'post_refused', text: 'failed', error: 'no' },
  post_accepted: { type: 'post_accepted', outcome: 'delivered' },
  post_undelivered: { type: 'post_undelivered' },
  still_listed: { type: 'still_listed' },
  message_unanswered: { type: 'message_unanswered', error: 'no' },
  message_not_found: { type: 'message_not_found', error: 'no' },
  postponed: { type: 'postponed' },
  answered: { type: 'answered', outcome: 'delivered', error: null, at: 5 },
  not_delivered: { type: 'not_delivered', error: null, at: 5 },
  failed: { type: 'failed', outcome: 'expired', error: null, at: 5 },
}

/** Each stage with each event, and where it leads; `-`: refused. */
const TABLE = `
event               | received running  deferred finished    unconfirmed refused             refused_unconfirmed accepted undelivered   resent        answered not_delivered failed
run_begun           | running  -        -        -           -           -                   -                   -        -             -             -        -             -
run_begun_again     | -        running  -        -           -           -                   -                   -        -             -             -        -             -
run_withdrawn       | -        received -        -           -           -                   -                   -        -             -             -        -             -
run_failed          | -        received -        -           -           -                   -                   -        -             -             -        -             -
run_deferred        | -        deferred -        -           -           -                   -                   -        -             -             -        -             -
result_fixed        | finished finished finished -           -           -                   -                   -        -             -             -        -             -
app_answered        | -        finished finished -           -           -                   -                   -        -             -             -        -             -
app_awaited         | -        -        deferred -           -           -                   -                   -        -             -             -        -             -
post_put_off        | -        -        -        finished    unconfirmed refused             refused_unconfirmed -        undelivered   resent        -        -             -
post_unanswered     | -        -        -        unconfirmed unconfirmed refused_unconfirmed refused_unconfirmed -        -             -             -        -             -
post_refused        | -        -        -        refused     refused     -                   -                   -        -             -             -        -             -
post_accepted       | -        -        -        accepted    accepted    -                   -                   -        -             -             -        -             -
post_undelivered    | -        -        -        undelivered undelivered -                   -                   -        -             -             -        -             -
still_listed        | -        -        -        -           -           -                   -                   accepted -             -             -        -             -
message_unanswered  | -        -        -        -           -           -                   -                   -        resent        -             -        -             -
message_not_found   | -        -        -        -           -           -                   -                   -        -             resent        -        -             -
postponed           | received running  deferred finished    unconfirmed refused             refused_unconfirmed accepted undelivered   resent        -        -             -
answered            | -        -        -        answered    answered    -                   -                   answered -             -             -        -             -
not_delivered       | -        -        -        -           -           -                   -                   -        not_delivered not_delivered -        -             -
failed              | failed   failed   failed   failed      failed      failed              failed              failed   failed        failed        -        -             -
`

describe('the table of calls', () => {
  const stages = Object.keys(CALLS) as CallStage[]

  it('lists each stage with each event', () => {
    const line = (type: string, cells: readonly string[]): string => [type, ...cells].join(' ')
    const lines = Object.values(EVENTS).map((event) =>
      line(
        event.type,
        stages.map((stage) => {
          const after = transition(CALLS[stage], event)
          return after === null ? '-' : stageOf(after)
        }),
      ),
    )
    const wanted = TABLE.trim()
      .split('\n')
      .map((row) => row.replace(/ *\|/, '').replace(/ +/g, ' ').trim())
    expect([line('event', stages), ...lines]).toEqual(wanted)
  })

  it('leads where the table of the program says', () => {
    for (const stage of stages) {
      expect(stageOf(CALLS[stage])).toBe(stage)
      for (const event of Object.values(EVENTS)) {
        const after = transition(CALLS[stage], event)
        expect(after === null ? undefined : stageOf(after)).toBe(TRANSITIONS[stage][event.type])
      }
    }
  })

  it('keeps a result once it is fixed, but for an output that the service refused', () => {
    const replacing = stages
      .filter((stage) => CALLS[stage].result !== null)
      .flatMap((stage) =>
        Object.values(EVENTS).map((event) => ({ event, after: transition(CALLS[stage], event) })),
      )
      .filter(({ after }) => after !== null && after.result !== RESULT)
    expect(new Set(replacing.map(({ event }) => event.type))).toEqual(new Set(['post_refused']))
  })
})
