import { tested, type Mutant } from '../mutant.ts'

const CLIENT = 'client/streams.test.ts'

/** What the reader of a stream and its reconnecting, which the sidecar and the client share, must not get wrong. */
export const STREAM: readonly Mutant[] = [
  tested(
    { file: CLIENT, only: 'with a `from_seq` of its own' },
    'a persisted event that carries from_seq ends its connection',
    'protocol/mention.ts',
    '  if (seq !== null) return null\n',
    '',
  ),
  tested(
    { file: CLIENT, only: 'after the request for it was refused' },
    'the rest of a stopped replay is forgotten when its request is refused',
    'protocol/resume-point.ts',
    'this.#stoppedAt = this.#asked',
    'this.#stoppedAt = null',
  ),
  tested(
    { file: CLIENT, only: 'too long to hold' },
    'a line that is too long is kept whole',
    'protocol/connection.ts',
    'const kept = line.slice(0, Math.max(0, LINE_KEPT - this.#length))',
    'const kept = line',
  ),
  tested(
    { file: 'source/drain.test.ts', only: 'needs a minute' },
    'a slow disk is taken for a silent service',
    'protocol/connection.ts',
    '  heard(): void {\n    this.#waitsSince = null\n',
    '  heard(): void {\n',
  ),
  tested(
    { file: CLIENT, only: 'has just closed' },
    'the slot of a stream that was closed counts as free',
    'protocol/reconnect-policy.ts',
    "if (this.#openedAt !== null) this.#end(this.#clock.steady(), 'broken')\n  }\n\n  /** A step",
    'this.#openedAt = null\n  }\n\n  /** A step',
  ),
  tested(
    { file: CLIENT, only: 'within a minute' },
    'a service may delay the next connection for ever',
    'protocol/reconnect-policy.ts',
    'Math.min(RETRY_CAP, Math.max(0, ms))',
    'Math.max(0, ms)',
  ),
]
