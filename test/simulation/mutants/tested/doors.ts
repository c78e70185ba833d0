import { tested, type Mutant, type NamedTest } from '../mutant.ts'

const WEBHOOKS = 'admin/webhooks.test.ts'
const CONNECTIONS = 'admin/connections.test.ts'
const GUARD = 'admin/guard.test.ts'
const OWN_ROUTES: NamedTest = { file: 'emulator/own.test.ts', only: 'answer programs on this machine' }

/** What strangers may cost: memory, places, time of the event loop, guesses. */
export const DOORS: readonly Mutant[] = [
  {
    name: 'a body is kept as the chunks in which it comes, however many',
    edits: [
      ['sidecar/admin/listener.ts', '  let chunks = 0\n', '  const chunks: Buffer[] = []\n'],
      [
        'sidecar/admin/listener.ts',
        'if (++chunks > CHUNKS + buffer.length / CHUNK_BYTES)',
        'if (chunks.push(chunk) > limit)',
      ],
    ],
    test: { file: WEBHOOKS, only: 'a body in small chunks' },
  },
  tested(
    { file: WEBHOOKS, only: 'a body in small chunks' },
    'a body may come in as many chunks as it has bytes',
    'sidecar/admin/listener.ts',
    'if (++chunks > CHUNKS + buffer.length / CHUNK_BYTES)',
    'if (++chunks > limit)',
  ),
  tested(
    { file: WEBHOOKS, only: 'requires content-length' },
    'a body without a length may be as long as any',
    'sidecar/admin/listener.ts',
    'announced === 0 ? Math.min(limit, SMALL) : announced',
    'announced === 0 ? limit : announced',
  ),
  tested(
    { file: WEBHOOKS, only: 'answers 503 to a fifth' },
    'each connection may send a body of a mebibyte',
    'sidecar/admin/listener.ts',
    'if (announced > SMALL && announced > this.#free)',
    'if (announced > SMALL && announced > limit)',
  ),
  tested(
    { file: WEBHOOKS, only: 'without waiting for the body' },
    'the body is read before the headers are looked at',
    'sidecar/admin/webhooks.ts',
    'const condemned = screen(head)',
    'const condemned = screen(head) === null ? null : null',
  ),
  tested(
    { file: CONNECTIONS, only: 'gone longest without a request' },
    'no connection makes room when all are in use',
    'sidecar/admin/listener.ts',
    'const victim = victimOf(connections)',
    'const victim = connections.size < options.limit ? victimOf(connections) : null',
  ),
  tested(
    { file: 'attack/exhaustion.test.ts', only: 'are silent at the admin listener' },
    'the admin listener closes new connections when all are in use',
    'sidecar/admin/listener.ts',
    'const close = keepConnections(server, connections)',
    'server.maxConnections = connections.limit\n  const close = keepConnections(server, { ...connections, limit: Infinity })',
  ),
  tested(
    { file: CONNECTIONS, only: 'the most connections first' },
    'a connection makes room whichever client has the most',
    'sidecar/admin/listener.ts',
    '      busy > victim.busy ||\n      (busy === victim.busy && isLonger(connection, victim.connection))',
    '      isLonger(connection, victim.connection)',
  ),
  tested(
    { file: CONNECTIONS, only: 'whose body stops arriving' },
    'a request whose body still comes counts as served',
    'sidecar/admin/listener.ts',
    'if (request.complete && !response.writableEnded) return true',
    'if (request.method !== undefined && !response.writableEnded) return true',
  ),
  tested(
    { file: 'std/json.test.ts', only: 'amid zeros' },
    'exact numbers are read with a reviver',
    'std/exact.ts',
    'return putBack(parseWithout(taken, text), taken)',
    `return JSON.parse(text, function (_key, value: unknown, context?: { source?: string }) {
    const { source } = context ?? {}
    return typeof value === 'number' && source !== undefined && heldValue(source) === null ? rawJSON(source) : value
  })`,
  ),
  tested(
    { file: 'std/json.test.ts', only: 'write arguments of (fractions|numbers out of range)' },
    'each number in the arguments of a call is read by itself',
    'std/exact.ts',
    'const span = spans?.around(start)',
    'const span = undefined as ReturnType<MemberSpans["around"]>',
  ),
  tested(
    { file: 'std/json.test.ts', only: 'are refused where JSON.parse refuses them' },
    'arguments that are passed on as text are not checked',
    'std/exact.ts',
    'if (value instanceof Verbatim) value.check()',
    '',
  ),
  tested(
    { file: GUARD, only: 'in a flood at the login' },
    'the admin token may be guessed as fast as one can',
    'sidecar/admin/guesses.ts',
    'const pause = all.wait(now)',
    'const pause = 0',
  ),
  tested(
    { file: GUARD, only: 'without a token' },
    'a proxy that says no more than Via is let in',
    'sidecar/admin/guard.ts',
    "'via|forwarded|",
    "'forwarded|",
  ),
  tested(
    OWN_ROUTES,
    'the emulator answers to any name',
    'emulator/routes/own.ts',
    'if (!isOurs)',
    "if (!isOurs && name === '')",
  ),
  tested(
    OWN_ROUTES,
    'the emulator answers pages of any origin',
    'emulator/routes/own.ts',
    'if (isForeign || site',
    'if (site',
  ),
]
