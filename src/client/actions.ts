import { isObject } from '../std/json.ts'
import { readAnswerReceipt } from './reply.ts'
import type { AnswerReceipt } from './reply.ts'
import type { ActOptions, CallAnswer } from './request.ts'
import { filled } from './template.ts'
import type { Transport } from './transport.ts'

export interface Actions {
  /**
   * Answers a function call. Branch on `outcome`: after `not_delivered` send a new message with the same information,
   * or fail the job. Approvals and questions are for a person; answering one is refused.
   */
  answer(sessionId: string, callId: string, answer: CallAnswer, options?: ActOptions): Promise<AnswerReceipt>
}

export function actionsOf(transport: Transport): Actions {
  return {
    answer: (session, call, answer, options) => {
      const given = bodyOf(answer)
      const body = (): object => {
        const values = { session_id: session, call_id: call }
        const rest = filled(
          transport.found.answerBody,
          values,
          'POST that takes call_id and output',
          'answer_path',
        )
        return { ...(isObject(rest) ? rest : {}), ...given }
      }
      const request = { ids: { session, call }, body, act: options ?? true } as const
      return transport.call('answer', request, options, readAnswerReceipt, 'the reply to an answer')
    },
  }
}

function bodyOf(answer: CallAnswer): { output: string } | { error: string } {
  if ('error' in answer) return { error: answer.error }
  const { output } = answer
  // JSON cannot express undefined and functions.
  const written: unknown = typeof output === 'string' ? output : JSON.stringify(output)
  return { output: typeof written === 'string' ? written : '' }
}
