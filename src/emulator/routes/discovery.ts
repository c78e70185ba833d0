import { nothing, operation, shape, type Operation } from '../operation.ts'
import { SESSION_SCOPES } from '../token.ts'
import { Type } from 'typebox'

/**
 * `/v1`, `/v1/openapi.json` and `/v1/health`. `describe` generates the description of the mounted
 * operations.
 */
export function discovery(describe: () => unknown): Operation[] {
  return [
    operation({
      id: 'getService',
      method: 'GET',
      path: '/v1',
      summary: 'Points to the machine-readable description',
      access: 'token',
      cost: 'read',
      query: nothing,
      success: {
        status: 200,
        description: 'The service.',
        schema: shape('Service'),
        headers: { Link: Type.String() },
      },
      handle: () => ({
        status: 200,
        body: { object: 'service', version: 'v1' },
        headers: { link: '</v1/openapi.json>; rel=service-desc' },
      }),
    }),
    operation({
      id: 'getDescription',
      method: 'GET',
      path: '/v1/openapi.json',
      summary: 'The OpenAPI description of these routes',
      access: 'open',
      cost: 'read',
      success: { status: 200, description: 'An OpenAPI 3.1 document.', schema: Type.Object({}) },
      handle: () => ({ status: 200, body: describe() }),
    }),
    operation({
      id: 'getHealth',
      method: 'GET',
      path: '/v1/health',
      summary: 'The cheapest check that a token is valid',
      access: 'any',
      cost: 'read',
      success: { status: 200, description: 'The token is valid.', schema: shape('Health') },
      handle: ({ token }) => {
        const usable = token.scopes.some((scope) => scope !== 'cli')
        return {
          status: 200,
          body: {
            object: 'health',
            status: 'ok',
            version: 'v1',
            scopes: token.scopes,
            usable,
            missing_scopes: usable ? [] : SESSION_SCOPES,
          },
        }
      },
    }),
  ]
}
