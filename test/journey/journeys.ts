import type { RigOptions } from '../support/rig.ts'
import type { End, Hit } from './recorder.ts'
import { Traveller } from './traveller.ts'

/**
 * How many files an event passes.
 *
 * A file is passed when a function of it is called within the window; the code of the module itself is not counted. A
 * window is what runs in the process from an event's beginning to its end (recorder.ts), after the program was quiet. A
 * timer that has nothing to do with the event may fall into one window, and hardly into all: a function counts when it
 * was called in each of twelve windows.
 *
 * The way leaves out the words and ports that everything uses (BESIDE), and what only observes the event: files that are
 * called beneath the observer alone. The count of all files is held too, so that nothing is gained by moving code there.
 */

/** Events at the start that are not counted: what is made once is made then. */
const WARMING = 2
const COUNTED = 12

/** Words and ports, and what metrics and the relay make of what they hear. `report.ts` says it in the observer's words. */
const BESIDE = [
  'core/',
  'std/',
  'protocol/mention.ts',
  'protocol/slot.ts',
  'system/',
  'sidecar/admin/metrics/',
  'sidecar/admin/relay/',
  'sidecar/report.ts',
]
const OBSERVER = 'core/observer.ts'
/** Takes callbacks out of the window of what has none. */
const NO_CALLBACK = { events: ['agent.thinking'] }

export const JOURNEYS: readonly {
  name: string
  end: End
  rig: RigOptions
  /** What is ready before, and what then causes one event. */
  prepare: (traveller: Traveller) => Promise<() => unknown>
}[] = [
  {
    name: 'frame to callback',
    end: 'callback',
    rig: { channels: ['stream'], handler: { events: ['agent.message'] } },
    prepare: async ({ rig }) => {
      const session = await rig.client.create()
      return () => rig.emulator.publish(session, 'agent.message', { text: 'Hello' })
    },
  },
  {
    name: 'webhook to state fact',
    end: 'state fact',
    rig: { channels: ['webhook'], handler: NO_CALLBACK },
    prepare: async ({ rig }) => {
      const session = await rig.client.create()
      return () => rig.client.send(session, 'say Hello')
    },
  },
  {
    name: 'call to answer',
    end: 'answer',
    rig: { channels: ['webhook'], handler: NO_CALLBACK, tools: { lookup: {} } },
    prepare: async ({ rig }) => {
      const session = await rig.client.withTools({ lookup: null })
      return () => rig.client.send(session, 'call lookup {}')
    },
  },
]

export interface Passed {
  /** Below src. */
  file: string
  /** The function that was called first. */
  first: string
  /** How often it was come to: a call while a function of the file is on the stack is not counted. */
  visits: number
  onTheWay: boolean
}

/** Makes the journey, and says what it passes in the order of first calls. */
export async function travel({ end, rig, prepare }: (typeof JOURNEYS)[number]): Promise<Passed[]> {
  await using traveller = await Traveller.start(rig)
  const cause = await prepare(traveller)
  for (let event = 0; event < WARMING; event++) await traveller.record(end, cause)
  let functions = (await traveller.record(end, cause)).recorded
  for (let event = 1; event < COUNTED; event++) {
    const { recorded } = await traveller.record(end, cause)
    functions = functions.filter((name) => recorded.includes(name))
  }
  await traveller.trace(functions)
  const { hits } = await traveller.record(end, cause)
  return inOrder(functions, hits)
}

/** Each file of `functions` once. A constructor without code of its own is counted, and never hit: it comes last. */
function inOrder(functions: readonly string[], hits: readonly Hit[]): Passed[] {
  const passed = new Map<string, Passed>()
  for (const { name, below } of hits) {
    const { file, called } = partsOf(name)
    const known = passed.get(file) ?? { file, first: called, visits: 0, onTheWay: false }
    if (!below.includes(file)) known.visits++
    known.onTheWay ||= !isBeside(file) && !below.includes(OBSERVER)
    passed.set(file, known)
  }
  for (const name of functions) {
    const { file, called } = partsOf(name)
    if (!passed.has(file)) passed.set(file, { file, first: called, visits: 0, onTheWay: !isBeside(file) })
  }
  return [...passed.values()]
}

function isBeside(file: string): boolean {
  return BESIDE.some((part) => file.startsWith(part))
}

function partsOf(name: string): { file: string; called: string } {
  const [file = '', , ...called] = name.split(':')
  return { file, called: called.join(':') || '(a function without a name)' }
}

/** The list for people: `·` is beside the way. */
export function render(name: string, passed: readonly Passed[]): string {
  const lines = passed.map(
    ({ file, first, visits, onTheWay }) =>
      `${onTheWay ? ' ' : '·'} ${String(visits).padStart(3)} × ${file}  ${first}`,
  )
  return `${name}: ${passed.filter(({ onTheWay }) => onTheWay).length} files on the way, ${passed.length} in all\n${lines.join('\n')}\n`
}
