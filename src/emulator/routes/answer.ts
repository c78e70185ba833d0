import { Type } from 'typebox'
import { takeAnswer, type Given } from '../answer.ts'
import { operation, shape, type Operation } from '../operation.ts'
import type { OpenDetails } from '../profile/details.ts'
import { invalid, notFound } from '../refusal.ts'
import { findSession } from './find.ts'

const body = Type.Object(
  {
    call_id: Type.String(),
    output: Type.Optional(
      Type.String({ description: 'The return value of the function; serialise JSON yourself.' }),
    ),
    error: Type.Optional(Type.String({ description: 'A fixed sentence: the model reads it.' })),
  },
  { additionalProperties: false },
)

/** Answering the agent's function calls. */
export function answerOperations(details: OpenDetails): Operation[] {
  return [
    operation({
      id: 'answerCall',
      method: 'POST',
      path: details.paths.answer,
      summary: "Answer one of the agent's function calls",
      access: 'tools:respond',
      cost: 'write',
      idempotent: true,
      body,
      success: { status: 200, description: 'Branch on `outcome`.', schema: shape('AnswerReply') },
      refusals: [404],
      handle: ({ world, params, body: { call_id, output, error }, token, idempotencyKey }) => {
        const session = findSession(world, params['session_id'])
        const given = readGiven(output, error)
        const action = world.ledger.findAction(session.id, call_id)
        if (action === undefined) throw notFound('call', call_id)
        if (action.type !== 'function_call') {
          throw invalid(
            `${call_id} is ${action.type === 'approval' ? 'an approval' : 'a question'}: a person resolves it in the Console`,
          )
        }
        const outcome = details.answer.outcomes[takeAnswer(world, session, action, given)]
        world.ledger.answer({
          at: world.clock.now(),
          call_id,
          session_id: session.id,
          output: output ?? null,
          error: error ?? null,
          outcome,
          idempotency_key: idempotencyKey,
          token_id: token.id,
        })
        const lost = world.faults.use('lose_answer_replies')
        return { status: 200, body: details.answer.reply(outcome, action), lost }
      },
    }),
  ]
}

function readGiven(output: string | undefined, error: string | undefined): Given {
  if (output !== undefined && error === undefined) return { kind: 'output', text: output }
  if (error !== undefined && output === undefined) return { kind: 'error', text: error }
  throw invalid('give either output or error')
}
