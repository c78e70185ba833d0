import type { ChannelStatus } from '../../core/observer.ts'

type State = ChannelStatus['state']

/**
 * Nothing listens at the service's address: the stream alternates between `connecting` and `waiting` every few seconds.
 * Both are one outage. @returns when the state `next` of a channel began; `at`: now.
 */
export function sinceOf(status: ChannelStatus, next: State, at: number): number {
  return next === status.state || (isOutage(next) && isOutage(status.state)) ? status.since : at
}

function isOutage(state: State): boolean {
  return state === 'connecting' || state === 'waiting'
}
