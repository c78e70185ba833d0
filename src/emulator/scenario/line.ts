import { readDuration } from '../duration.ts'
import type { FunctionCall, Step } from '../step.ts'

const SIZE_UNITS: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }
/** The maximum of one burst for load tests; use several lines for more. */
const LONGEST_BURST = 1_000_000
const LARGEST_BURST_BYTES = 65_536

type Reader = (rest: string) => Step | undefined

/**
 * The line language: each line of a message is a step, which begins with one of these verbs. `undefined` means that
 * the line is not a step, so the agent repeats it.
 */
const VERBS: Readonly<Record<string, Reader>> = {
  say: (rest) => ({ do: 'say', text: rest }),
  think: (rest) => ({ do: 'think', text: rest }),
  call: (rest) => readCalls(`call ${rest}`),
  shell: (rest) => (rest === '' ? undefined : { do: 'shell', command: rest }),
  write: readWrite,
  // An approval of an approval has no meaning, and a line with thousands of them would nest too
  // deeply.
  approve: (rest) =>
    /^(approve\s|$)/.test(rest) ? undefined : { do: 'approve', step: readLine(rest), line: rest },
  ask: (rest) => (rest === '' ? undefined : { do: 'ask', question: rest }),
  preview: (rest) => (/^\d{1,5}$/.test(rest) ? { do: 'preview', port: Number(rest) } : undefined),
  wait: (rest) => withDuration(rest, (ms) => ({ do: 'wait', ms })),
  collect: (rest) => withDuration(rest, (ms) => ({ do: 'collect', ms })),
  fail: (rest) => ({ do: 'fail', reason: rest === '' ? 'failed on request' : rest }),
  hang: (rest) => (rest === '' ? { do: 'hang' } : undefined),
  cannot: (rest) => {
    const reason = /^start(?:\s+(.*))?$/.exec(rest)
    return reason === null
      ? undefined
      : { do: 'cannot_start', reason: reason[1] ?? 'the workspace was not provisioned' }
  },
  burst: readBurst,
}

/** The step of a line of a message. */
function readLine(line: string): Step {
  return readVerb(line) ?? { do: 'say', text: line.trim() }
}

/** Every step of a message, one for each line that is not blank. */
export function readLines(text: string): Step[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map(readLine)
}

/** The step of a line that begins with a known verb and fits it. */
export function readVerb(line: string): Step | undefined {
  const match = /^(\S+)\s*(.*)$/.exec(line.trim())
  const verb = match?.[1] ?? ''
  return Object.hasOwn(VERBS, verb) ? VERBS[verb]?.(match?.[2] ?? '') : undefined
}

function withDuration(text: string, step: (ms: number) => Step): Step | undefined {
  const ms = readDuration(text)
  return ms === undefined ? undefined : step(ms)
}

/** `call a {…} & call b {…}`: both functions are called at the same time. */
function readCalls(line: string): Step | undefined {
  const calls: FunctionCall[] = []
  for (const part of line.split(/\s+&\s+(?=call\s)/)) {
    const match = /^call\s+(\S{1,64})(?:\s+(.+))?$/.exec(part.trim())
    if (match === null) return undefined
    const given = readArguments(match[2] ?? '{}')
    if (given === undefined) return undefined
    calls.push({ name: match[1] ?? '', arguments: given.value })
  }
  return { do: 'call', calls }
}

function readArguments(text: string): { value: unknown } | undefined {
  if (text === '{{last}}') return { value: text }
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}

/** `write PATH text`, or `write PATH 20MiB` for a file of that size. */
function readWrite(rest: string): Step | undefined {
  const match = /^(\S+)(?:\s+(.*))?$/.exec(rest)
  if (match === null) return undefined
  const path = match[1] ?? ''
  const content = match[2] ?? ''
  const size = /^(\d{1,12})(B|KiB|MiB|GiB)$/.exec(content)
  if (size === null) return { do: 'write', path, content }
  return { do: 'write_size', path, bytes: Number(size[1]) * (SIZE_UNITS[size[2] ?? ''] ?? 1) }
}

/**
 * `burst COUNT [BYTES]`: that many messages of that many characters, as fast as the streams accept
 * them.
 */
function readBurst(rest: string): Step | undefined {
  const match = /^(\d{1,7})(?:\s+(\d{1,5}))?$/.exec(rest)
  if (match === null) return undefined
  const count = Number(match[1])
  const bytes = Number(match[2] ?? 100)
  return count > LONGEST_BURST || bytes > LARGEST_BURST_BYTES ? undefined : { do: 'burst', count, bytes }
}
