import { reading, writing, type Check } from '../check.ts'
import { Feed, seqOf, typeOf, type Frame } from '../feed.ts'
import { at, is, kind, number, textAt } from '../kind.ts'
import { fill } from '../places.ts'
import { speech } from '../speech.ts'
import { Stuck } from '../stuck.ts'
import { framesOf, turnOf } from '../talk.ts'
import type { Trial } from '../trial.ts'

/** Milliseconds: a ping comes every fifteen seconds, at most LATE earlier or later. */
const PING = 15_000
const LATE = 2500
/** Time limit of an immediate answer, milliseconds. */
const SOON = 2000
/** How long a stream that must stay silent is read, milliseconds. */
const SILENCE = 300

const opening = reading('the event stream opens', 'EVT-29 EVT-32 GEN-08', async (trial) => {
  const feed = await Feed.open(trial.deployment, '/v1/events')
  try {
    const type = feed.reply.headers['content-type'] ?? ''
    trial.expect('GEN-08', feed.reply, 'text/event-stream', type.startsWith('text/event-stream'), type)
    await feed.until(() => feed.retry ?? undefined, SOON)
    trial.value('EVT-29', feed.reply, 'retry:', feed.retry, number)
    if (feed.retry !== null) trial.note('EVT-32', `${feed.retry} ms`)
  } finally {
    feed.close()
  }
})

const pings: Check = {
  ...reading('a stream is kept alive', 'EVT-28 LIM-30', pinged),
  aside: true,
}

async function pinged(trial: Trial): Promise<void> {
  const feed = await Feed.open(trial.deployment, '/v1/events')
  try {
    const first = await feed.until(() => feed.comments[0], PING + LATE)
    if (feed.ended) throw new Stuck('the stream ended before its time')
    trial.value('EVT-28', feed.reply, 'the comment', first?.text.trim(), is('ping'))
    const after = first === null ? null : first.at - feed.openedAt
    const span = kind('about 15 s', (ms) => typeof ms === 'number' && ms > PING - LATE && ms < PING + LATE)
    trial.value('LIM-30', feed.reply, 'milliseconds to the first ping', after, span)
  } finally {
    feed.close()
  }
}

const resuming = writing(
  'a stream resumes at the given cursor',
  'EVT-04 EVT-05 EVT-14 EVT-17 EVT-18 EVT-21..27 EVT-08..13',
  async (trial) => {
    const { sessionStream } = trial.places
    if (sessionStream === null)
      throw new Stuck('the description does not show the path of the session stream')
    const id = await trial.session()
    await turnOf(trial, id, speech.say('remember this'))
    const live = (await framesOf(trial, id, settled)).filter((frame) => seqOf(frame) !== null)
    const path = fill(sessionStream, { session: id })
    const seqs = (frames: readonly Frame[]): string[] =>
      frames.filter((frame) => seqOf(frame) !== null).map((frame) => String(seqOf(frame)))
    const wanted = seqs(live)
    const all = await Feed.open(trial.deployment, path, { query: { last_event_id: '0' } })
    try {
      await all.until(() => (all.frames.length >= wanted.length ? true : undefined), SOON)
      await trial.deployment.pause(SILENCE)
      trial.note('EVT-05', `GET ${sessionStream.path}`)
      const seen = seqs(all.frames)
      trial.expect(
        'EVT-22 EVT-23 EVT-26',
        all.reply,
        `every frame: ${wanted.join(', ')}`,
        wanted.every((seq) => seen.includes(seq)),
        seen,
      )
      const fleeting = all.frames.filter((frame) => seqOf(frame) === null)
      trial.expect(
        'EVT-18',
        all.reply,
        'no transient frame in a replay',
        fleeting.length === 0,
        fleeting.map(typeOf),
      )
      const same = live.filter(
        (frame) =>
          !all.frames.some(
            (other) => other.text === frame.text && other.event === frame.event && other.id === frame.id,
          ),
      )
      trial.expect(
        'EVT-04',
        all.reply,
        'the same frames as the stream of the organization',
        same.length === 0,
        same.map(({ text }) => text),
      )
      for (const frame of all.frames)
        trial.value('EVT-14', all.reply, 'id:', frame.id, is(String(seqOf(frame))))
    } finally {
      all.close()
    }
    const middle = wanted[Math.floor(wanted.length / 2)] ?? '0'
    const some = await Feed.open(trial.deployment, path, { headers: { 'last-event-id': middle } })
    try {
      const rest = wanted.slice(wanted.indexOf(middle) + 1)
      await some.until(() => (some.frames.length >= rest.length ? true : undefined), SOON)
      await trial.deployment.pause(SILENCE)
      const seen = seqs(some.frames)
      trial.expect(
        'EVT-21 EVT-23 EVT-17 EVT-27',
        some.reply,
        `the frames after ${middle}: ${rest.join(', ')}`,
        seen.join() === rest.join(),
        seen,
      )
      await turnOf(trial, id, speech.say('and this'))
      const further = await some.until(
        () =>
          some.frames.filter((frame) => typeOf(frame) === 'turn.ended').length > 1 ||
          some.frames.length > rest.length
            ? true
            : undefined,
        SOON,
      )
      trial.expect('EVT-24', some.reply, 'live frames after the replay', further === true)
    } finally {
      some.close()
    }
    await trial.remove(id)
  },
)

function settled(frames: readonly Frame[]): boolean {
  return frames.some((frame) => typeOf(frame) === 'turn.ended')
}

const fresh = writing('a stream without a cursor gives live frames only', 'EVT-25', async (trial) => {
  const { sessionStream } = trial.places
  if (sessionStream === null) throw new Stuck('the description does not show the path of the session stream')
  const id = await trial.session()
  const { turn } = await turnOf(trial, id, speech.say('before'))
  const feed = await Feed.open(trial.deployment, fill(sessionStream, { session: id }))
  try {
    await trial.deployment.pause(SILENCE)
    const old = feed.frames.filter(
      ({ text }) => text.includes(textAt(turn, 'id')) && at(turn, 'id') !== undefined,
    )
    trial.expect('EVT-25', feed.reply, 'no past frames', old.length === 0, old.map(typeOf))
  } finally {
    feed.close()
  }
  await trial.remove(id)
})

export const streams: readonly Check[] = [opening, pings, resuming, fresh]
