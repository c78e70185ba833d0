import { Type, type Static } from 'typebox'
import { FINAL_CALL_STATES, type Call as LedgerCall, type CallState } from '../../../core/call.ts'
import type { StoreReader } from '../../../core/store-reader.ts'
import type { AdminActions } from '../actions.ts'
import { component, nullable, oneOf, time } from '../component.ts'
import type { Held } from '../entry.ts'
import { listRoute } from '../page.ts'
import { Problem } from '../problem.ts'
import { route, type Route } from '../route.ts'

const STATES: readonly CallState[] = ['received', 'running', 'finished', ...FINAL_CALL_STATES]
const State = oneOf(STATES)

const SERVICE_TIME = "Milliseconds since the epoch on the service's clock."

export const Call = component(
  'Call',
  Type.Object({
    call_id: Type.String(),
    name: Type.String({ description: 'The tool.' }),
    session_id: Type.String(),
    turn_id: nullable(Type.String()),
    state: State,
    outcome: nullable(
      Type.String(),
      "The outcome: the service's own word, or unknown, unresolved, refused, expired, cancelled.",
    ),
    attempts: Type.Integer({ description: 'Runs of the tool so far.' }),
    answer: nullable(
      oneOf(['output', 'error']),
      'The kind of answer for the model: the output of the tool, or the fixed error text. null while there is none.',
    ),
    error: nullable(Type.String(), 'The error of the last failed run or post. Never sent to the model.'),
    created_at: nullable(time(), SERVICE_TIME),
    expires_at: nullable(time(), SERVICE_TIME),
    received_at: time(),
    started_at: nullable(time()),
    finished_at: nullable(time()),
    ended_at: nullable(time()),
  }),
)

const AnswerGiven = component(
  'AnswerGiven',
  Type.Object({
    call_id: Type.String(),
    answer: Type.Union([Type.Literal('output'), Type.Literal('error')]),
  }),
)

export function callRoutes(store: StoreReader, actions: AdminActions): Route[] {
  return [
    listRoute(
      {
        path: '/api/calls',
        summary: 'Function calls that this sidecar accepted, the newest first.',
        of: 'calls',
        entry: Call,
        query: { state: Type.Optional(State), session_id: Type.Optional(Type.String()) },
        show: callOf,
      },
      ({ session_id: sessionId, ...query }) => store.calls({ ...query, sessionId }),
    ),
    route(
      {
        method: 'POST',
        path: '/api/calls/{call_id}/answer',
        summary: 'Answers a call whose tool answered 202.',
        body: Type.Object(
          {
            output: Type.Optional(
              Type.String({ description: 'The output for the model, passed on byte for byte.' }),
            ),
            error: Type.Optional(
              Type.Literal(true, { description: "The model gets the tool's fixed error text instead." }),
            ),
          },
          { description: 'Exactly one of output and error.' },
        ),
        success: {
          status: 202,
          description: 'The answer is stored and will be posted.',
          content: AnswerGiven,
        },
        problems: [404, 409],
      },
      async ({ params, body: { output, error } }) => {
        const callId = params['call_id'] ?? ''
        if ((output === undefined) === (error === undefined)) {
          throw new Problem('invalid_request', 'give exactly one of "output" (a string) and "error" (true)')
        }
        await actions.answerCall(callId, output === undefined ? { error: true } : { output })
        return { call_id: callId, answer: output === undefined ? 'error' : 'output' }
      },
    ),
  ]
}

export function callOf(call: LedgerCall): Held<Static<typeof Call.schema>> {
  return { ...call, answer: call.result?.kind ?? null }
}
