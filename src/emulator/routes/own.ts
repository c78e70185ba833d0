import { isIP } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { readBody, readQuery } from '../check.ts'
import { readDuration } from '../duration.ts'
import { resolveByPerson, type Verdict } from '../person.ts'
import { invalid, notFound, refuse } from '../refusal.ts'
import { SCOPES, SESSION_SCOPES, TOKEN_DAYS, type Scope } from '../token.ts'
import { viewLedger } from '../truth.ts'
import type { World } from '../world.ts'

const closed = { additionalProperties: false }

const tokenBody = Type.Object(
  {
    scopes: Type.Optional(
      Type.Array(Type.Enum([...SCOPES]), {
        minItems: 1,
        uniqueItems: true,
        description: "Left out: `cli`, the Console's default kind.",
      }),
    ),
    days: Type.Optional(Type.Enum([...TOKEN_DAYS])),
  },
  closed,
)
const clockBody = Type.Object({ advance: Type.String() }, closed)
const actionBody = Type.Object(
  { approved: Type.Optional(Type.Boolean()), answer: Type.Optional(Type.String()) },
  closed,
)
const ledgerQuery = Type.Object({ after_seq: Type.Optional(Type.Integer({ minimum: 0 })) }, closed)
/** Longest single jump of the clock. */
const LONGEST_ADVANCE_MS = 366 * 86_400_000

/**
 * The emulator's own routes, which the real service does not have. They need no token: every
 * program that can reach them may use them.
 */
export function mountOwnRoutes(
  app: FastifyInstance,
  world: World,
  allowedHosts: readonly string[] = [],
): void {
  const names = new Set(allowedHosts.map((name) => name.toLowerCase()))
  app.addHook('onRequest', (request, _reply, done) => {
    // Checks the route, not `request.url`: /%5Femulator or http://host/_emulator leads to the same routes.
    if (request.routeOptions.url?.startsWith('/_emulator')) refusePages(request, names)
    done()
  })
  app.post('/_emulator/tokens', async (request, reply) => {
    const { scopes = ['cli'], days = 7 } = readBody(tokenBody, json(request.body) ?? {})
    checkMix(world, scopes)
    const { id, secret } = world.tokens.mint(scopes, days)
    return reply.code(201).send({ id, token: secret })
  })
  app.delete<{ Params: { id: string } }>('/_emulator/tokens/:id', async (request) => {
    const { id } = request.params
    if (!world.tokens.revoke(id)) throw notFound('token', id)
    return { id, revoked: true }
  })
  app.post('/_emulator/clock', async (request) => {
    const { advance } = readBody(clockBody, json(request.body))
    const ms = readDuration(advance)
    if (ms === undefined || ms > LONGEST_ADVANCE_MS)
      throw invalid('advance must be a duration such as 250ms, 30s, 5m, 2h or 7d')
    await world.clock.advance(ms)
    return { now: world.clock.now() }
  })
  app.get('/_emulator/faults', async () => world.faults.get())
  app.put('/_emulator/faults', async (request) => {
    world.faults.set(json(request.body) ?? {})
    return world.faults.get()
  })
  app.post<{ Params: { call_id: string } }>('/_emulator/actions/:call_id', async (request) => {
    const verdict = readVerdict(readBody(actionBody, json(request.body)))
    const action = resolveByPerson(world, request.params.call_id, verdict)
    return { call_id: action.callId, resolution: action.resolution }
  })
  app.get('/_emulator/ledger', async (request) => {
    const { after_seq = 0 } = readQuery(ledgerQuery, request.query as Record<string, unknown>)
    return viewLedger(world, after_seq)
  })
}

/**
 * Any web page can make a browser on this machine send requests here: across origins, which Origin and Sec-Fetch-Site
 * show, or by DNS rebinding, which Host shows. No page can make an IP address, or a name without a dot (as containers
 * use), resolve to this machine.
 * @throws {Refusal} 403
 */
function refusePages({ headers }: FastifyRequest, names: ReadonlySet<string>): void {
  const { host = '', origin } = headers
  const name = (/^(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(host)?.[1] ?? '').toLowerCase()
  const isOurs =
    isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 ||
    /^[\w-]+(\.localhost)?$/.test(name) ||
    name === 'host.docker.internal' ||
    names.has(name)
  if (!isOurs)
    throw refuse(
      'permission_denied',
      `the emulator's own routes do not answer to the name ${JSON.stringify(name.slice(0, 100))}; allow it with --allow-host`,
    )
  const site = headers['sec-fetch-site']
  const isForeign = origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`
  if (isForeign || site === 'cross-site' || site === 'same-site')
    throw refuse('permission_denied', "the emulator's own routes do not answer pages of another origin")
}

/** @throws {Refusal} 400 for scopes that the profile keeps apart. */
export function checkMix(world: World, scopes: readonly Scope[]): void {
  if (world.details.auth.mixesScopes || !scopes.includes('credentials:write')) return
  const other = scopes.find((scope) => SESSION_SCOPES.includes(scope) && scope === 'sessions:write')
  if (other !== undefined) throw invalid('credentials:write is never part of a token that creates sessions')
}

function readVerdict({ approved, answer }: { approved?: boolean; answer?: string }): Verdict {
  if (approved !== undefined && answer === undefined) return { approved }
  if (answer !== undefined && approved === undefined) return { answer }
  throw invalid('give either approved or answer')
}

function json(body: unknown): unknown {
  if (typeof body !== 'string' || body === '') return undefined
  try {
    return JSON.parse(body) as unknown
  } catch {
    throw invalid('the body is not JSON')
  }
}
