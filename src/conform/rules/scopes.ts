import { reading, type Check } from '../check.ts'

const scopes = reading(
  'the description requires the scopes of the interface',
  'AUT-05..09 AUT-32..34 AUT-36..38 EVT-06 EVT-07 GEN-14 AUT-16 AUT-18..20 AUT-22 AUT-23',
  async (trial) => {
    const { description, described, health: reply } = trial.ground
    const all = new Set(description.operations.flatMap((one) => description.scopes(one)))
    const mentioned = reply.text + described.text
    const named = [
      ['AUT-05', 'sessions:read'],
      ['AUT-06', 'sessions:write'],
      ['AUT-07', 'tools:respond'],
      ['AUT-08', 'artifacts:read'],
      ['AUT-09', 'credentials:write'],
    ] as const
    for (const [id, scope] of named)
      trial.expect(id, described, `the scope ${scope}`, mentioned.includes(`"${scope}"`), [...all].join(', '))
    const { places } = trial
    const asks = (ids: string, operation: { method: string; path: string } | null, scope: string): void => {
      const found = description.operations.find((one) => one === operation)
      if (found === undefined) return trial.leave(ids, 'the description does not have this operation')
      const wanted = description.scopes(found)
      trial.expect(
        ids,
        described,
        `${found.method} ${found.path} needs ${scope}`,
        wanted.includes(scope),
        wanted.join(', '),
      )
    }
    const shown = (endpoint: string) => description.find(endpoint)
    asks('AUT-32', shown('GET /v1/sessions/{}/files'), 'sessions:read')
    asks('AUT-33', shown('GET /v1/sessions/{}/turns'), 'sessions:read')
    asks('AUT-34', shown('GET /v1/sessions/{}/items'), 'sessions:read')
    asks('AUT-36', places.answer, 'tools:respond')
    asks('AUT-37', shown('GET /v1/sessions/{}/artifacts/archive'), 'artifacts:read')
    asks('AUT-38 AUT-16 GEN-14', shown('POST /v1/model-credentials'), 'credentials:write')
    asks('EVT-06', shown('GET /v1/events'), 'sessions:read')
    asks('EVT-07', places.sessionStream, 'sessions:read')
    asks('AUT-18', places.message, 'sessions:write')
    asks('AUT-19', places.cancel, 'sessions:write')
    asks('AUT-20', shown('DELETE /v1/sessions/{}'), 'sessions:write')
    asks('AUT-23', places.deleteArtifact, 'sessions:write')
    const changing = description.operations.filter(
      (one) => one.method !== 'GET' && description.scopes(one).every((scope) => scope.endsWith(':read')),
    )
    const loose = changing.map(({ method, path }) => `${method} ${path}`).join(', ')
    trial.expect('AUT-22', described, 'no change with only reading scopes', changing.length === 0, loose)
  },
  [],
)

export const scopeChecks: readonly Check[] = [scopes]
