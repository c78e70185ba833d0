import { acceptMessage, cancelTurn, steer } from '../agent.ts'
import { nothing, operation, shape, type Call, type Operation } from '../operation.ts'
import { orderedPage, pageOf, placeById } from '../page.ts'
import type { OpenDetails } from '../profile/details.ts'
import { refuse } from '../refusal.ts'
import { placeOfItem, viewItem, viewList, viewTurn } from '../view.ts'
import { findSession, findTurn } from './find.ts'

/** Messages, turns and items. */
export function inputOperations(details: OpenDetails): Operation[] {
  const { paths } = details
  return [
    operation({
      id: 'sendInput',
      method: 'POST',
      path: paths.message,
      summary: 'Send a message, or steer the running turn with `input.steer`',
      access: 'sessions:write',
      cost: 'write',
      idempotent: true,
      body: details.message.body,
      success: {
        status: 202,
        description: 'Accepted; the turn does not exist yet.',
        schema: shape('InputReply'),
      },
      refusals: [404, 409, details.queueFullStatus],
      handle: (call) => receive(call, details),
    }),
    operation({
      id: 'listTurns',
      method: 'GET',
      path: '/v1/sessions/{session_id}/turns',
      summary: 'List the turns of a session',
      access: 'sessions:read',
      cost: 'read',
      query: orderedPage,
      success: { status: 200, description: 'One page.', schema: shape('TurnList') },
      refusals: [404],
      handle: ({ world, params, query }) => {
        const { turns } = findSession(world, params['session_id'])
        const page = pageOf(turns, query, placeById(turns))
        return { status: 200, body: viewList(details, page, (turn) => viewTurn(details, turn)) }
      },
    }),
    operation({
      id: 'getTurn',
      method: 'GET',
      path: paths.turn,
      summary: 'Read a turn',
      access: 'sessions:read',
      cost: 'read',
      query: nothing,
      success: { status: 200, description: 'The turn.', schema: shape('Turn') },
      refusals: [404],
      handle: ({ world, params }) => {
        const [, turn] = findTurn(world, params['session_id'], params['turn_id'])
        return { status: 200, body: viewTurn(details, turn) }
      },
    }),
    operation({
      id: 'cancelTurn',
      method: 'POST',
      path: paths.cancel,
      summary: 'Stop a running turn',
      access: 'sessions:write',
      cost: 'write',
      idempotent: true,
      success: { status: 202, description: 'The turn as it is; it ends at once.', schema: shape('Turn') },
      refusals: [404, 409],
      handle: ({ world, params }) => {
        const [session, turn] = findTurn(world, params['session_id'], params['turn_id'])
        if (session.run?.turn !== turn || turn.status !== 'working') {
          throw refuse('conflict', `turn ${turn.id} is not running`)
        }
        cancelTurn(session)
        return { status: 202, body: viewTurn(details, turn) }
      },
    }),
    operation({
      id: 'listItems',
      method: 'GET',
      path: '/v1/sessions/{session_id}/items',
      summary: 'List the transcript of a session',
      access: 'sessions:read',
      cost: 'read',
      query: orderedPage,
      success: { status: 200, description: 'One page.', schema: shape('ItemList') },
      refusals: [404],
      handle: ({ world, params, query }) => {
        const { items } = findSession(world, params['session_id'])
        const page = pageOf(items, query, (id) => placeOfItem(items, id))
        return { status: 200, body: viewList(details, page, (event) => viewItem(details, event)) }
      },
    }),
  ]
}

function receive(
  { world, params, body, idempotencyKey, token }: Call<unknown, unknown>,
  details: OpenDetails,
) {
  const session = findSession(world, params['session_id'])
  const { steer: steering, text } = details.message.read(body)
  const base = {
    at: world.clock.now(),
    session_id: session.id,
    text,
    idempotency_key: idempotencyKey,
    token_id: token.id,
  }
  if (steering) {
    if (!steer(world, session, text))
      throw refuse('conflict', 'no turn is running, so there is nothing to steer')
    const id = `msg_steer_${world.log.last}`
    world.ledger.message({ ...base, id, kind: 'steer', queued: false })
    return {
      status: 202,
      body: details.message.reply({ id, at: base.at, sessionId: session.id, position: null }),
      lost: world.faults.use('lose_message_replies'),
    }
  }
  const { message, position } = acceptMessage(world, session, text)
  world.ledger.message({ ...base, id: message.id, kind: 'message', queued: position !== null })
  return {
    status: 202,
    body: details.message.reply({ id: message.id, at: message.at, sessionId: session.id, position }),
    lost: world.faults.use('lose_message_replies'),
  }
}
