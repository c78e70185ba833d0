import { Chance } from './chance.ts'
import { APP, PLAIN, type Scenario, type SessionPlan, type Step } from './scenario.ts'

/** Seeds with a session that sends many transient events. No planted bug and no regression uses one of these seeds. */
const CHATTY = { of: 27, rests: [15, 22] }
/** Takes transient events, as it names them. */
const LIVE = { ...APP, name: 'live', events: ['agent.text', 'agent.message', 'turn.*'] }
const SAY: Step = { do: 'say' }

/** In some seeds one session says hundreds of transient events to handlers that are slow, beside sessions that do not. */
export function withChattySession(scenario: Scenario, seed: number): Scenario {
  if (!CHATTY.rests.includes(seed % CHATTY.of)) return scenario
  const chance = new Chance(seed, 'loud session')
  const shout = (): Step => ({ do: 'shout', deltas: chance.int(200, 500) })
  const says = Array.from({ length: chance.int(4, 12) }, () => SAY)
  const chatty: SessionPlan = {
    at: chance.int(0, 1000),
    messages: [{ at: 100, turn: { ...PLAIN, steps: [shout(), ...says, shout(), SAY] } }],
    deleted: null,
  }
  const calm: SessionPlan = {
    at: chance.int(500, 2500),
    messages: [{ at: 100, turn: { ...PLAIN, steps: [SAY, { do: 'wait', ms: 500 }, SAY] } }],
    deleted: null,
  }
  return {
    ...scenario,
    channels: { stream: true, webhook: false, poll: true },
    handlers: [...scenario.handlers, LIVE],
    sessions: [...scenario.sessions.slice(0, 1), chatty, calm],
    handlerTakes: chance.pick([200, 500, 900]),
  }
}
