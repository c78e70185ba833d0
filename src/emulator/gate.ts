import type { Bucket, BucketName } from './budget.ts'
import type { Operation } from './operation.ts'
import { Refusal, refuse } from './refusal.ts'
import { SESSION_SCOPES, type Token } from './token.ts'
import type { World } from './world.ts'

/** An accepted request, and its cost. */
export interface Admission {
  token: Token
  bucketName: BucketName
  bucket: Bucket
  charged: boolean
}

/**
 * Decides whether a request reaches its operation: token, scope, rate, in this order, with the
 * faults in force. `showBudget` gets the budget headers as soon as they are known, so that refusals have
 * them too.
 * @throws {Refusal} 401, 403, 429, 5xx.
 */
export function admit(
  world: World,
  operation: Operation,
  authorization: string | undefined,
  showBudget: (headers: Record<string, string>) => void,
): Admission | undefined {
  const { faults } = world
  const failure = faults.use('server_errors') ? 500 : faults.failureOf(operation.id)
  if (failure !== undefined) throw new Refusal(failure, 'internal_error', 'the service failed')
  if (operation.access === 'open') return undefined
  if (faults.use('directory_unavailable')) {
    const headers = { 'retry-after': faults.retryAfter }
    throw refuse('directory_unavailable', 'the identity directory cannot be reached', headers)
  }
  const token = identify(world, authorization)
  const bucketName = operation.cost === 'creation' ? 'creation' : 'reads'
  const bucket = world.budgets.of(token.id, bucketName)
  const show = (): void => showBudget(world.details.budget.headers(bucket.state(bucketName)))
  show()
  checkScope(operation, token)
  if (faults.use('rate_limit')) throw tooFast(faults.retryAfter)
  if (operation.cost === 'creation' && faults.use('project_limit')) {
    throw refuse('project_limit_exceeded', 'the organization has as many concurrent sessions as it may')
  }
  const charged = operation.cost !== 'write' || world.details.budget.chargesWrites
  if (charged && !bucket.take()) throw tooFast(String(bucket.retryAfter()))
  show()
  return { token, bucketName, bucket, charged }
}

/** A request that was refused by a limit is not charged. */
export function refund(
  world: World,
  admission: Admission,
  showBudget: (headers: Record<string, string>) => void,
): void {
  if (!admission.charged) return
  admission.bucket.release()
  showBudget(world.details.budget.headers(admission.bucket.state(admission.bucketName)))
}

function identify(world: World, authorization: string | undefined): Token {
  const match = /^Bearer +(\S+)$/i.exec(authorization ?? '')
  const token = match?.[1] === undefined ? undefined : world.tokens.find(match[1])
  if (token !== undefined && !world.faults.use('unauthorized')) return token
  throw new Refusal(
    401,
    world.details.auth.rejectedCode,
    'the access token is missing, unknown, expired or revoked',
    {
      'www-authenticate': 'Bearer realm=service',
    },
  )
}

function checkScope(operation: Operation, token: Token): void {
  const { access } = operation
  if (access === 'any' || access === 'open') return
  if (token.scopes.every((scope) => scope === 'cli')) {
    throw refuse(
      'permission_denied',
      `a cli token cannot use this interface; create one with ${access === 'token' ? SESSION_SCOPES.join(', ') : access}`,
    )
  }
  if (access !== 'token' && !token.scopes.includes(access)) {
    throw refuse('permission_denied', `this needs the scope ${access}, which the token does not have`)
  }
}

function tooFast(retryAfter: string): Refusal {
  return refuse('rate_limit_exceeded', 'too many requests', { 'retry-after': retryAfter })
}
