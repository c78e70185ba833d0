import type { Fault, Plan } from './faults.ts'
import { SEED } from './exhaustive.ts'
import { CALL, FIXED, story } from './fixed.ts'
import { run, type Outcome } from './run.ts'
import { APP, drawScenario, LARGE, PLAIN, type Scenario, type TurnPlan } from './scenario.ts'
import type { When } from './sites.ts'

/** The `nth` passage of a place, from 1, or each (0), and what goes wrong there. */
type Step = readonly [nth: number, when: When, site: string, fault: Fault]

/** A bug that the simulation found, or one that few seeds would show, as the story that shows it. */
export interface Regression {
  name: string
  scenario: Scenario
  /** For what else is left to chance. */
  seed?: number
  /** So many seeds from `seed` on: few of them show the bug, and which ones changes with the code. Absent: one. */
  tries?: number
  steps: readonly Step[]
}

const STREAM = { stream: true, webhook: false, poll: false }
/** The second frame of the session that has come into the scope. */
const REPEATED = 12
const POLL = { stream: false, webhook: false, poll: true }

export const REGRESSIONS: readonly Regression[] = [
  {
    name: 'a wall clock set back during the first look made all sessions old',
    scenario: story([], {
      channels: STREAM,
      startFrom: 'now',
      sessions: [{ at: 2000, messages: [{ at: 10, turn: PLAIN }], deleted: null }],
      faultsUntil: 40_000,
    }),
    seed: 3,
    steps: [
      [1, 'before', 'http health', 'lost'],
      [57, 'before', 'weather', 'clock_back'],
    ],
  },
  {
    name: 'a turn whose artifacts were awaited was taken as known when it could be read only after they had come',
    scenario: story([], {
      channels: POLL,
      startFrom: 'now',
      sessions: [
        {
          at: -5000,
          messages: [
            { at: 10, turn: { ...PLAIN, artifacts: { ms: 30_000, state: 'ready', count: 1 } } },
            { at: 60_000, turn: PLAIN },
          ],
          deleted: null,
        },
      ],
      faultsUntil: 30_000,
    }),
    steps: [[0, 'before', 'service list turns', 'unreadable']],
  },
  {
    name: 'a turn that ended after the start was taken as known when the first look was slow',
    scenario: story([], {
      channels: STREAM,
      startFrom: 'now',
      sessions: [
        {
          at: -1000,
          messages: [{ at: 3000, turn: PLAIN }],
          deleted: null,
        },
      ],
    }),
    steps: [[1, 'before', 'http health', 'lost']],
  },
  {
    name: 'frames before the stop of a replay were lost when they could not be stored and there was no cursor yet',
    scenario: story([], {
      channels: STREAM,
      startFrom: 'now',
      sessions: [{ at: 2000, messages: [{ at: 10, turn: PLAIN }], deleted: null }],
      faultsUntil: 40_000,
    }),
    steps: [
      [1, 'before', 'stream frame', 'replay_stop'],
      [1, 'before', 'store.commit frames', 'disk_error'],
    ],
  },
  {
    name: 'items that were asked for were lost in a crash: they were stored after their hint had gone',
    scenario: fixed('polling what is over already'),
    steps: [[1, 'after', 'http list items', 'crash']],
  },
  {
    name: 'the turns of a session that was gone were asked for without end',
    scenario: fixed('a session that is deleted while its artifacts are collected'),
    steps: [],
  },
  {
    name: 'what came before the first subscription was reported by no channel',
    scenario: story([{ do: 'say' }], { channels: { stream: false, webhook: true, poll: false } }),
    steps: [[0, 'before', 'http list webhooks', 'refused']],
  },
  {
    name: 'a stop waited for a session that the stream looked up',
    scenario: story([{ do: 'say' }], { channels: STREAM, startFrom: 'now', faultsUntil: 40_000 }),
    steps: [
      [1, 'before', 'stream frame', 'cut'],
      [0, 'before', 'http read session', 'lost'],
      [24, 'before', 'weather', 'restart'],
    ],
  },
  {
    name: 'a stop waited for a service that did not reply to an answer',
    scenario: { ...fixed('stream only'), faultsUntil: 60_000 },
    steps: [
      [1, 'before', 'http answer', 'lost'],
      [2, 'before', 'http answer', 'lost'],
      [3, 'before', 'weather', 'restart'],
    ],
  },
  {
    name: 'a call whose action was found gone kept no pending follow-up message',
    scenario: { ...fixed('an answer that is not delivered'), faultsUntil: 20_000 },
    steps: [[0, 'before', 'service message', 'bad_gateway']],
  },
  {
    name: 'an answer that was taken counted as expired: an attempt without a reply was forgotten',
    scenario: { ...fixed('stream only'), faultsUntil: 60_000 },
    steps: [
      [1, 'after', 'http answer', 'lost_reply'],
      [2, 'before', 'service answer', 'project_limit'],
    ],
  },
  {
    name: 'an answer that arrived after a crash counted as expired: the next posting of it was put off',
    scenario: { ...fixed('stream only'), faultsUntil: 60_000 },
    steps: [
      [1, 'before', 'http answer', 'slow'],
      [4, 'before', 'weather', 'crash'],
      [0, 'before', 'http answer', 'refused'],
    ],
  },
  {
    name: 'an answer that was taken before a crash counted as expired: its outcome could not be read',
    scenario: { ...fixed('stream only'), faultsUntil: 60_000 },
    steps: [
      [1, 'after', 'http answer', 'crash'],
      [4, 'before', 'http read session', 'lost'],
      [3, 'before', 'weather', 'restart'],
    ],
  },
  {
    name: 'a hint that was put off was released twice: another worker may have claimed it by then',
    scenario: drawn(2),
    seed: 2,
    steps: [],
  },
  {
    name: 'a turn that was not settled was lost from sight behind newer ones where single turns cannot be read',
    scenario: drawn(68),
    seed: 68,
    steps: [],
  },
  {
    name: 'a call that its app put off stayed open when a crash hid that its action was gone',
    scenario: story([
      {
        do: 'call',
        calls: [
          { tool: 'later', timeout: null, held: true, refusesOutput: false },
          { tool: 'lookup', timeout: 60, held: false, refusesOutput: false },
        ],
      },
    ]),
    seed: 1,
    tries: 50,
    steps: [[3, 'after', 'store.commit reading', 'crash']],
  },
  {
    name: "a handler's Retry-After was lost when neither the attempt nor the wait could be stored",
    scenario: story([{ do: 'say' }], { channels: STREAM }),
    steps: [
      [1, 'before', 'app handler', 'busy'],
      [1, 'before', 'store.commit acks', 'disk_error'],
      [1, 'before', 'store.lanes.retry', 'disk_error'],
    ],
  },
  {
    name: 'a call that was over before its turns were read stayed open until its deadline',
    scenario: story(
      [
        {
          do: 'call',
          calls: [
            { tool: 'inside', timeout: 120, held: false, refusesOutput: false },
            { tool: 'later', timeout: 120, held: true, refusesOutput: false },
          ],
        },
      ],
      { channels: STREAM, faultsUntil: 5000 },
    ),
    seed: 1004,
    steps: [],
  },
  {
    name: 'a call was answered with an error though its run had not begun at a stop',
    scenario: story([{ do: 'call', calls: [{ ...CALL, tool: 'charge', timeout: null }] }], {
      faultsUntil: 15_000,
    }),
    seed: 1,
    tries: 20,
    steps: [
      [1, 'before', 'store.commit new calls', 'disk_slow'],
      [1, 'before', 'weather', 'restart'],
    ],
  },
  {
    name: 'an app that had put a call off had no time left after a restart with the wall clock ahead',
    scenario: story([{ do: 'call', calls: [{ ...CALL, tool: 'later', timeout: 120 }] }], {
      channels: STREAM,
      faultsUntil: 15_000,
    }),
    seed: 2,
    steps: [[2, 'before', 'weather', 'clock_ahead']],
  },
  {
    name: 'frames that came while others could not be stored moved the cursor past those',
    scenario: story([{ do: 'say' }, { do: 'say' }, { do: 'say' }], { channels: STREAM }),
    seed: 3,
    steps: [[1, 'before', 'store.commit frames', 'disk_error']],
  },
  {
    name: 'a copy of a webhook was answered as a duplicate though the first could not be stored',
    scenario: story([{ do: 'say' }], { channels: { stream: false, webhook: true, poll: false } }),
    seed: 23,
    steps: [
      [1, 'before', 'webhook', 'twice'],
      [3, 'before', 'store.commit hints', 'disk_error'],
    ],
  },
  {
    name: 'a reading ahead that an earlier hint had begun answered for a run that could not start since',
    scenario: story([], {
      channels: STREAM,
      sessions: [
        {
          at: 100,
          messages: [
            { at: 10, turn: { ...PLAIN, steps: [], artifacts: { ms: 50, state: 'ready', count: 1 } } },
            { at: 1250, turn: { ...PLAIN, startFails: true } },
          ],
          deleted: null,
        },
      ],
    }),
    seed: 50,
    tries: 130,
    steps: [],
  },
  {
    name: 'a session that only a reading ahead found gone was not noticed',
    scenario: drawn(212),
    seed: 212,
    steps: [
      [1, 'before', 'service list sessions', 'rate_limit'],
      [3, 'before', 'http read session', 'lost'],
    ],
  },
  {
    name: 'a session that only the list of its artifacts found gone was not noticed',
    scenario: story([], {
      channels: STREAM,
      sessions: [{ at: 2000, messages: [{ at: 10, turn: PLAIN }], deleted: 2000 }],
    }),
    seed: 2,
    steps: [[1, 'before', 'http list artifacts', 'lost']],
  },
  {
    name: 'what came before the first connection counted as new when the disk was slow to note its beginning',
    scenario: drawn(16090),
    seed: 8,
    steps: [[3, 'before', 'store.settings.setCheckpoint', 'disk_slow']],
  },
  {
    name: 'a session that only the stream found gone, while searching the beginning of new events, was not noticed',
    scenario: story([], {
      channels: STREAM,
      startFrom: 'now',
      sessions: [{ at: -5000, messages: [{ at: 10, turn: PLAIN }], deleted: 15_000 }],
      faultsUntil: 15_000,
    }),
    steps: [
      [1, 'before', 'weather', 'restart'],
      [1, 'before', 'http read session', 'lost'],
    ],
  },
  {
    name: 'a tool ran again though its app had answered in the commit that wrote the run down',
    scenario: drawn(2084),
    seed: 2084,
    steps: [
      [4, 'before', 'weather', 'clock_back'],
      [6, 'before', 'weather', 'asleep'],
      [29, 'before', 'weather', 'clock_back'],
      [1, 'after', 'store.commit items', 'crash'],
      [3, 'before', 'store.commit call finished', 'disk_slow'],
    ],
  },
  {
    name: 'a callback that was under way at the end of the grace went on after the stop',
    // The process sleeps through its grace. It wakes to a reset connection, and sends the callback once more.
    scenario: story([{ do: 'say' }], { channels: STREAM, faultsUntil: 15_000 }),
    seed: 1,
    steps: [
      [1, 'before', 'app handler', 'slow'],
      [1, 'after', 'http callback', 'reset_reply'],
      [6, 'before', 'weather', 'restart'],
      [7, 'before', 'weather', 'asleep'],
    ],
  },
  {
    name: 'a stop left behind a handler that had a transient event in hand',
    scenario: story([{ do: 'wait', ms: 3000 }, { do: 'think' }], {
      channels: STREAM,
      handlers: [{ ...APP, name: 'inside', kind: 'module', events: ['agent.text'] }],
      faultsUntil: 15_000,
    }),
    steps: [
      [1, 'before', 'app function', 'hang'],
      [11, 'before', 'weather', 'restart'],
    ],
  },
  {
    name: 'a reading that a first look which failed left behind put an older session over a newer one',
    scenario: story([], {
      channels: STREAM,
      startFrom: 'now',
      sessions: [
        {
          at: -1000,
          messages: [{ at: 10, turn: { ...PLAIN, steps: [{ do: 'call', calls: [CALL] }] } }],
          deleted: null,
        },
        {
          at: -900,
          messages: [
            { at: 10, turn: { ...PLAIN, startFails: true } },
            { at: 7000, turn: PLAIN },
          ],
          deleted: null,
        },
      ],
      faultsUntil: 15_000,
    }),
    steps: [
      [1, 'before', 'store.commit new calls', 'disk_error'],
      [1, 'before', 'http list turns', 'lost'],
    ],
  },
  {
    name: 'an old event counted as new when the service repeated it after the beginning of new events',
    scenario: story([], {
      channels: STREAM,
      startFrom: 'now',
      sessions: [
        {
          at: -3000,
          messages: [
            {
              at: 10,
              turn: {
                ...PLAIN,
                steps: [{ do: 'wait', ms: 6000 }, { do: 'think' }, { do: 'call', calls: [CALL] }],
              },
            },
          ],
          deleted: null,
        },
      ],
      faultsUntil: 15_000,
    }),
    steps: [
      [1, 'before', 'weather', 'restart'],
      [6, 'before', 'stream frame', 'repeat'],
      [7, 'before', 'stream frame', 'repeat'],
    ],
  },
  {
    name: 'a session was looked at no more, its artifacts awaited, after a reading that was older than what was known',
    scenario: drawn(253_198),
    seed: 253_198,
    steps: [
      [1, 'before', 'service health', 'directory'],
      [1, 'after', 'http health', 'slow'],
      [1, 'before', 'http discover', 'refused'],
      [1, 'after', 'http read session', 'slow'],
      [6, 'before', 'stream frame', 'half'],
      [1, 'before', 'http list turns', 'refused'],
      [4, 'before', 'service read session', 'directory'],
    ],
  },
  {
    name: 'a turn was not noticed whose frames followed a replay of old events at once',
    scenario: story([], {
      channels: STREAM,
      startFrom: 'now',
      sessions: [
        {
          at: -5000,
          messages: [
            { at: 10, turn: PLAIN },
            { at: 5950, turn: PLAIN },
          ],
          deleted: null,
        },
      ],
      faultsUntil: 15_000,
    }),
    steps: [[1, 'before', 'weather', 'restart']],
  },
  {
    name: 'an old event was delivered as new when its replay was slow to begin',
    scenario: drawn(2979),
    seed: 2979,
    steps: [[3, 'before', 'store.calls.claim', 'crash']],
  },
  {
    name: 'an old event was delivered as new when our clock was wrong at the start and the service unreachable',
    scenario: story([], {
      channels: STREAM,
      startFrom: 'now',
      sessions: [{ at: -20_000, messages: [{ at: 10, turn: PLAIN }], deleted: null }],
      faultsUntil: 30_000,
    }),
    seed: 4198,
    steps: [
      [1, 'after', 'store.settings.registerHandlers', 'crash'],
      [1, 'before', 'weather', 'clock_back'],
      [4, 'before', 'weather', 'service_unreachable'],
    ],
  },
  {
    name: 'an old event was delivered as new when the service paused before it replayed it',
    scenario: story([], {
      channels: STREAM,
      startFrom: 'now',
      sessions: [{ at: -20_000, messages: [{ at: 10, turn: PLAIN }], deleted: null }],
      faultsUntil: 15_000,
    }),
    steps: [
      [1, 'before', 'weather', 'restart'],
      [1, 'before', 'stream frame', 'pause'],
    ],
  },
  {
    name: 'an old event was delivered as new when it came with what was live',
    scenario: story([], {
      channels: STREAM,
      startFrom: 'now',
      sessions: [
        {
          at: -20_000,
          messages: [
            { at: 10, turn: PLAIN },
            { at: 24_000, turn: { ...PLAIN, steps: [{ do: 'think' }, { do: 'say' }] } },
          ],
          deleted: null,
        },
      ],
      faultsUntil: 15_000,
    }),
    seed: 5,
    steps: [
      [1, 'before', 'weather', 'restart'],
      [2, 'before', 'stream frame', 'pause'],
    ],
  },
  {
    name: 'an answer that was taken after its sender had died was counted as expired when its repetition was refused',
    scenario: drawn(55_058),
    seed: 848,
    steps: [
      [1, 'before', 'http list sessions', 'refused'],
      [1, 'after', 'http list sessions', 'reset_reply'],
      [1, 'before', 'weather', 'service_unreachable'],
      [1, 'before', 'store.commit new calls', 'disk_error'],
      [1, 'after', 'http answer', 'crash'],
      [3, 'before', 'service answer', 'project_limit'],
    ],
  },
  {
    name: 'a turn whose artifacts were pending was not found behind others at the first look',
    scenario: story([], {
      channels: POLL,
      startFrom: 'now',
      sessions: [
        {
          at: -20_000,
          messages: [
            { at: 10, turn: { ...PLAIN, artifacts: { ms: 45_000, state: 'ready', count: 1 } } },
            { at: 5000, turn: PLAIN },
            { at: 8000, turn: PLAIN },
            { at: 11_000, turn: PLAIN },
          ],
          deleted: null,
        },
      ],
    }),
    seed: 4,
    steps: [],
  },
  {
    name: 'a call was forgotten before the reading that had found it was through, and was run and answered again',
    scenario: unshared(1435),
    seed: 1435,
    steps: [
      [2, 'after', 'store.commit hints', 'crash'],
      [1, 'after', 'http list turns', 'slow'],
      [1, 'before', 'http answer', 'lost'],
      [2, 'after', 'store.resources.known', 'crash'],
      [2, 'after', 'http list turns', 'slow'],
      [6, 'before', 'http read session', 'lost'],
    ],
  },
  {
    name: 'a callback whose connection was reset was sent again though its handler had been paused meanwhile',
    scenario: unshared(1979),
    seed: 25,
    tries: 25,
    steps: [
      [1, 'before', 'store.commit frames', 'crash'],
      [1, 'after', 'http list items', 'reset_reply'],
      [25, 'after', 'http callback', 'reset_reply'],
    ],
  },
  {
    name: 'items that another read had reported were reported again by one that hung, once they had been pruned',
    scenario: unshared(13312),
    seed: 13312,
    steps: [
      [1, 'after', 'http health', 'crash'],
      [5, 'after', 'clock.soon', 'crash'],
      [1, 'before', 'store.commit reading', 'disk_error'],
      [4, 'before', 'http list items', 'lost'],
    ],
  },
  {
    name: 'a reading of the first look that hung set back the position of the reported items of a session',
    scenario: story([], {
      channels: { stream: false, webhook: true, poll: true },
      startFrom: 'now',
      sessions: [
        { at: -2342, messages: [said(5736, 250, 1654, 0, 847)], deleted: null },
        {
          at: -2230,
          messages: [said(1768, 0, 1484, 0, 433), said(7790, 2483), said(3619, 0, 0, 555, 2298)],
          deleted: null,
        },
      ],
      faultsUntil: 15_000,
      upkeep: { retention: 2000, interval: 300, acts: [] },
    }),
    seed: 1010548,
    steps: [
      [1, 'after', 'http list items', 'lost_reply'],
      [1, 'before', 'store.commit reading', 'disk_error'],
      [10, 'after', 'http list items', 'lost_reply'],
    ],
  },
  {
    name: 'a reading of the first look that hung took back the end of a turn, which was reported again once it was pruned',
    scenario: story([], {
      channels: POLL,
      startFrom: 'now',
      sessions: [
        {
          at: -2872,
          messages: [said(624, 1626), said(4738, 0, 0, 298, 0), said(1736, 0, 2583)],
          deleted: null,
        },
        { at: -1617, messages: [said(254, 1373, 0)], deleted: null },
      ],
      faultsUntil: 30_000,
      upkeep: { retention: 2000, interval: 300, acts: [] },
    }),
    seed: 1206,
    steps: [
      [1, 'before', 'http list turns', 'reset'],
      [1, 'before', 'store.commit reading', 'disk_error'],
      [2, 'after', 'http list turns', 'slow'],
      [2, 'before', 'http list sessions', 'reset'],
      [4, 'before', 'http list turns', 'reset'],
      [3, 'before', 'http list artifacts', 'reset'],
      [2, 'after', 'http list artifacts', 'slow'],
      [3, 'after', 'http list artifacts', 'lost_reply'],
      [5, 'before', 'http list sessions', 'reset'],
    ],
  },
  {
    name: 'a request that waits for the service to give it time is given up with the stop',
    scenario: unshared(2255),
    seed: 2255,
    steps: [
      [1, 'before', 'service stream', 'rate_limit'],
      [8, 'before', 'weather', 'restart'],
    ],
  },
  {
    name: 'a stop that slept through its grace left a lane waiting for its session to be read',
    scenario: drawn(383698),
    seed: 383698,
    steps: [
      [1, 'before', 'http discover', 'lost'],
      [5, 'before', 'weather', 'service_unreachable'],
      [29, 'before', 'weather', 'clock_ahead'],
      [3, 'before', 'store.commit hints', 'disk_error'],
      [2, 'before', 'http list items', 'reset'],
      [2, 'before', 'store.commit acks', 'disk_error'],
      [2, 'after', 'http list items', 'reset_reply'],
      [2, 'before', 'store.commit reading', 'disk_error'],
      [31, 'before', 'weather', 'asleep'],
      [46, 'before', 'weather', 'restart'],
    ],
  },
  {
    name: 'a stop did not wait for the run of a call that a reading had taken for new and the ledger knew',
    scenario: story(
      [
        {
          do: 'call',
          calls: [
            { ...CALL, tool: 'later' },
            { ...CALL, tool: 'inside' },
          ],
        },
      ],
      { channels: { stream: true, webhook: false, poll: true }, faultsUntil: 15_000 },
    ),
    seed: 1000117,
    steps: [
      [3, 'before', 'store.commit hints', 'disk_slow'],
      [3, 'before', 'weather', 'service_unreachable'],
      [1, 'before', 'store.commit call finished', 'disk_slow'],
      [2, 'before', 'app tool', 'busy'],
      [4, 'before', 'store.commit hints', 'disk_slow'],
      [10, 'before', 'weather', 'restart'],
    ],
  },
  {
    name: 'facts of the first read were forgotten while it still ran, and reported again',
    scenario: story([], {
      channels: { stream: false, webhook: true, poll: false },
      startFrom: 'now',
      sessions: [
        {
          at: -17_000,
          messages: [said(27, 20_000)],
          deleted: null,
        },
        {
          at: -16_000,
          messages: [
            {
              at: 180,
              turn: {
                ...PLAIN,
                steps: [
                  {
                    do: 'call',
                    calls: [
                      { ...CALL, tool: 'later', timeout: 20 },
                      { ...CALL, tool: 'inside', timeout: 120 },
                    ],
                  },
                ],
              },
            },
          ],
          deleted: null,
        },
      ],
      faultsUntil: 5000,
      upkeep: { retention: 60_000, interval: 300, acts: [] },
    }),
    seed: 124,
    steps: [
      [3, 'before', 'weather', 'disk_full'],
      [4, 'before', 'weather', 'clock_back'],
      [1, 'before', 'store.commit new calls', 'disk_slow'],
      [1, 'before', 'store.log.missed', 'disk_slow'],
    ],
  },
  {
    // Seed 10423. The former process wrote nothing more, and no other process ran.
    name: 'a second process whose start a full disk stopped leaves the store to the first',
    scenario: story([], {
      channels: STREAM,
      handlerTakes: 900,
      secondAt: 2250,
      faultsUntil: 8000,
      sessions: [1, 2, 3, 4].map((n) => ({ at: 100 * n, messages: [said(10, 0)], deleted: null })),
    }),
    // Small pages: the attempts under way, which the start records as cut, do not fit.
    seed: 11,
    steps: [[4, 'before', 'weather', 'disk_full']],
  },
  {
    name: 'a dead letter that is retried has all of its attempts again',
    scenario: story([{ do: 'say' }], {
      faultsUntil: 60_000,
      upkeep: { retention: 60_000, interval: 2000, acts: [{ at: 30_000, do: 'retry dead' }] },
    }),
    steps: [[0, 'before', 'app handler', 'error']],
  },
  {
    // Seed 450925. The session's next fact, which the handler put off, is asked for at once as well.
    name: 'a delivery that is retried before a crash does not wait for what its handler said before',
    scenario: story([{ do: 'say' }], {
      upkeep: { retention: 60_000, interval: 20_000, acts: [{ at: 1500, do: 'retry one' }] },
    }),
    steps: [
      [6, 'before', 'app handler', 'busy'],
      [1, 'after', 'store.operator.retry', 'crash'],
    ],
  },
  {
    name: 'new events began too late when the only known answers of the service were slow',
    scenario: story([{ do: 'say' }], { channels: STREAM, startFrom: 'now', faultsUntil: 40_000 }),
    steps: [
      [1, 'before', 'http health', 'slow'],
      ...[1, 2, 3, 4].map((nth): Step => [nth, 'before', 'http discover', 'refused']),
      [1, 'before', 'http stream', 'refused'],
    ],
  },
  {
    // Seed 833506.
    name: 'the beginning of new events was recorded by an answer that had come while the machine slept',
    scenario: story([{ do: 'say' }], {
      channels: { stream: true, webhook: false, poll: true },
      startFrom: 'now',
      faultsUntil: 40_000,
    }),
    steps: [
      ...[1, 2, 3, 4].flatMap((nth): Step[] => [
        [nth, 'before', 'http health', 'refused'],
        [nth, 'before', 'http discover', 'refused'],
      ]),
      [1, 'before', 'http stream', 'refused'],
      [1, 'after', 'http list sessions', 'slow'],
      [8, 'before', 'weather', 'asleep'],
    ],
  },
  {
    name: 'a run that a crash had cut short was given up by a wall clock that was wrong while the service was unreachable',
    scenario: drawn(2038001),
    seed: 2038001,
    steps: [
      [1, 'before', 'http stream', 'slow'],
      [5, 'before', 'weather', 'clock_back'],
      [8, 'before', 'weather', 'clock_ahead'],
      [12, 'before', 'stream frame', 'half'],
      [4, 'before', 'store.resources.knownTurns', 'crash'],
      [16, 'before', 'weather', 'service_unreachable'],
      [19, 'before', 'weather', 'clock_ahead'],
    ],
  },
  {
    name: 'a call that a reading and its posting both close is closed once, though the disk is slow',
    scenario: story([{ do: 'call', calls: [CALL, { ...CALL, tool: 'charge' }] }], { faultsUntil: 20_000 }),
    seed: 113,
    steps: [[1, 'before', 'store.commit call answered', 'disk_slow']],
  },
  {
    name: 'a session that a reading ahead found gone was not noticed when the list had shown it meanwhile',
    scenario: drawn(4137806),
    seed: 4137806,
    steps: [
      [1, 'before', 'store.lanes.nextDue', 'crash'],
      [2, 'before', 'http list turns', 'lost'],
      [2, 'before', 'http callback', 'crash'],
      [3, 'before', 'weather', 'app_unreachable'],
      [4, 'before', 'store.lanes.nextDue', 'crash'],
      [3, 'after', 'stream chunk', 'crash'],
      [4, 'before', 'http callback', 'crash'],
      [7, 'after', 'store.resources.known', 'crash'],
      [21, 'before', 'store.settings.checkpoint', 'crash'],
      [9, 'before', 'weather', 'clock_ahead'],
      [27, 'after', 'clock.soon', 'crash'],
      [7, 'before', 'http read session', 'lost'],
    ],
  },
  {
    name: 'a delivered and pruned fact was delivered again when the service repeated its frame',
    scenario: unshared(5372),
    seed: 5372,
    steps: [
      [16, 'before', 'weather', 'clock_ahead'],
      [11, 'before', 'stream frame', 'repeat'],
    ],
  },
  {
    name: 'an action of a turn was reported after its end, by an earlier list',
    scenario: unshared(12_707),
    seed: 12_707,
    steps: [
      [3, 'before', 'weather', 'app_unreachable'],
      [1, 'after', 'store.resources.summary', 'crash'],
      [2, 'before', 'stream frame', 'pause'],
      [7, 'before', 'weather', 'disk_full'],
    ],
  },
  {
    name: 'a full disk had the sessions that could not be written down read round and round',
    scenario: story([], {
      channels: { stream: false, webhook: true, poll: true },
      faultsUntil: 20_000,
      sessions: [1, 2, 3].map((n) => ({
        at: 100 * n,
        messages: [
          { at: 10, turn: { ...PLAIN, artifacts: { ms: 45_000, state: 'ready' as const, count: 1 } } },
        ],
        deleted: null,
      })),
    }),
    seed: 2,
    steps: [[4, 'before', 'weather', 'disk_refuses']],
  },
  {
    name: 'a full disk had a call that could not be put off taken up round and round',
    scenario: story([{ do: 'call', calls: [CALL, CALL] }], { channels: STREAM, faultsUntil: 20_000 }),
    seed: 145,
    tries: 50,
    steps: [
      [1, 'before', 'http tool', 'refused'],
      [2, 'before', 'weather', 'disk_refuses'],
    ],
  },
  {
    name: 'a replay counted what was pending as one more',
    scenario: unshared(104),
    seed: 104,
    steps: [[6, 'before', 'app handler', 'redirect']],
  },
  {
    name: 'a hint that came while its session was read went with the reading',
    scenario: story([], {
      channels: STREAM,
      sessions: [1, 2, 3, 4, 5, 6].map((n) => ({
        at: 300 * n - 200,
        messages: [
          { at: 10, turn: { ...PLAIN, steps: [], artifacts: { ms: 50, state: 'ready' as const, count: 1 } } },
          { at: 1400, turn: { ...PLAIN, startFails: true } },
        ],
        deleted: null,
      })),
    }),
    tries: 20,
    steps: [],
  },
  {
    name: 'calls that could not be stored leave their slots to the next reader that finds them',
    scenario: story([{ do: 'call', calls: [CALL, CALL] }], { channels: STREAM, faultsUntil: 20_000 }),
    steps: [[1, 'before', 'store.commit new calls', 'disk_error']],
  },
  {
    name: 'a call that the session no longer waits for was answered with an error when its end could not be written at once',
    scenario: story(
      [
        {
          do: 'call',
          calls: [
            { ...CALL, tool: 'charge', timeout: 120 },
            { ...CALL, tool: 'charge', timeout: null, held: false },
          ],
        },
      ],
      { channels: STREAM, faultsUntil: 15_000 },
    ),
    seed: 1,
    tries: 10,
    steps: [[1, 'before', 'store.commit call failed', 'disk_error']],
  },
  {
    name: 'after writes were refused the queue was asked a thousand times a second while one session was read',
    scenario: story([{ do: 'say' }, { do: 'wait', ms: 2000 }, { do: 'say' }], {
      channels: POLL,
      faultsUntil: 15_000,
    }),
    seed: 4,
    steps: [
      [1, 'before', 'weather', 'disk_refuses'],
      [2, 'before', 'http list turns', 'lost'],
    ],
  },
  {
    name: 'without a key a follow-up message that came late was sent again',
    scenario: story([{ do: 'call', calls: [{ ...CALL, held: false }] }], {
      absent: ['idempotency header'],
      faultsUntil: 60_000,
    }),
    seed: 2,
    steps: [[1, 'before', 'http message', 'slow']],
  },
  {
    name: 'without a key a follow-up message that waited behind another was sent again',
    scenario: story(
      [
        { do: 'call', calls: [{ ...CALL, held: false }] },
        { do: 'wait', ms: 200_000 },
      ],
      { absent: ['idempotency header'] },
    ),
    steps: [[1, 'after', 'http message', 'reset_reply']],
  },
  {
    // A crash between the message and its reply, no idempotency header, an answer that was not delivered: few seeds draw all.
    name: 'without a key a follow-up message whose reply a crash cut off was sent again after the restart',
    scenario: story([{ do: 'call', calls: [{ ...CALL, held: false }] }], {
      absent: ['idempotency header'],
      faultsUntil: 60_000,
    }),
    steps: [[1, 'after', 'http message', 'crash']],
  },
  {
    name: 'a follow-up message whose reply was lost goes out again under its first key',
    scenario: story([{ do: 'call', calls: [{ ...CALL, held: false }] }], { faultsUntil: 60_000 }),
    steps: [[1, 'after', 'http message', 'reset_reply']],
  },
  {
    name: 'an answer that a gateway refused is sent again under its first key',
    scenario: story([{ do: 'call', calls: [CALL] }], { faultsUntil: 20_000 }),
    steps: [[0, 'before', 'service answer', 'bad_gateway']],
  },
  {
    name: 'the output of a tool that must not run twice is kept until the disk takes it',
    scenario: story([{ do: 'call', calls: [{ ...CALL, tool: 'charge' }] }], { faultsUntil: 20_000 }),
    steps: [[1, 'before', 'store.commit call finished', 'disk_error']],
  },
  {
    name: 'frames from before a session came into the scope were delivered when the service repeated them',
    scenario: story([{ do: 'say' }], {
      channels: { stream: true, webhook: false, poll: true },
      faultsUntil: 30_000,
      scope: {
        scope: { metadata: { app: 'ours' }, createdByToken: [] },
        first: 'same',
        restartAt: null,
        strangers: [
          {
            plan: { at: 100, messages: [said(10, 0), said(20_000, 0)], deleted: null },
            first: { fate: 'moved', metadata: { app: 'theirs' }, createdBy: 'tok_1' },
            patches: [{ at: 8000, metadata: { app: 'ours' } }],
          },
        ],
      },
    }),
    steps: [[REPEATED, 'before', 'stream frame', 'repeat']],
  },
]

/** Plays one, with each of its seeds until one breaks. @returns what came of the last, and the steps that none reached. */
export async function replay(regression: Regression): Promise<Outcome & { missed: readonly Step[] }> {
  const { steps, seed = SEED, tries = 1 } = regression
  const missed = new Set(steps)
  for (let next = seed; ; next++) {
    const outcome = await play(regression, next, missed)
    if (outcome.violation !== null || next === seed + tries - 1) return { ...outcome, missed: [...missed] }
  }
}

async function play({ scenario, steps }: Regression, seed: number, missed: Set<Step>): Promise<Outcome> {
  const passed = new Map<string, number>()
  const plan: Plan = {
    decide(_passage, site, when, possible) {
      const place = `${site} ${when}`
      const nth = (passed.get(place) ?? 0) + 1
      passed.set(place, nth)
      const step = steps.find((one) => (one[0] === nth || one[0] === 0) && one[1] === when && one[2] === site)
      if (step === undefined || !possible.includes(step[3])) return null
      missed.delete(step)
      return step[3]
    },
  }
  return await run({ seed, mode: 'liveness', scenario, plan })
}

/** A message whose turn waits so many milliseconds one after the other, or says something (0). */
function said(at: number, ...waits: number[]): { at: number; turn: TurnPlan } {
  const steps = waits.map((ms): TurnPlan['steps'][number] => (ms === 0 ? { do: 'say' } : { do: 'wait', ms }))
  return { at, turn: { ...PLAIN, steps } }
}

/** What the seed draws, as it was before there was any upkeep. */
function drawn(seed: number): Scenario {
  return { ...unshared(seed), upkeep: null }
}

/** What the seed draws, as it was before any organization was shared. */
function unshared(seed: number): Scenario {
  return { ...drawScenario(seed, LARGE), scope: null }
}

function fixed(name: string): Scenario {
  const scenario = FIXED[name]
  if (scenario === undefined) throw new Error(`there is no scenario "${name}"`)
  return scenario
}
