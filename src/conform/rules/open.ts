import { isObject } from '../../std/json.ts'
import { reading, type Check } from '../check.ts'
import type { Description } from '../description.ts'
import { STREAM_EVENTS } from '../interface.ts'
import { textAt } from '../kind.ts'
import { examplesIn } from './examples.ts'

const open = reading(
  'details that the interface leaves open, as described',
  'GEN-32 ACT-17 INP-04 TRN-27 TRN-28 EVT-05 ART-10 ART-11 AGT-33 AGT-34 MOD-28 FIL-33 LIM-41 SES-51 SES-115..117 STA-22 STA-32 TOO-48 TOO-49 ITM-08 ACT-20 TRN-21 SES-92 SES-128 TOO-53 PRE-09 PRE-12 PRE-13 FIL-42 MOD-18 ART-05 INP-05 EVT-36',
  async (trial) => {
    const { description, places } = trial.ground
    const { schemas } = description
    const place = (id: string, operation: { method: string; path: string } | null): void =>
      operation === null
        ? trial.leave(id, 'the description does not show it')
        : trial.note(id, `${operation.method} ${operation.path}`)
    place('ACT-17', places.answer)
    place('INP-04', places.message)
    place('TRN-27', places.turn)
    place('TRN-28', places.cancel)
    place('EVT-05', places.sessionStream)
    place('ART-10', places.artifacts)
    place('ART-11', places.deleteArtifact)
    place('AGT-33', places.saveAgent)
    place('AGT-34', description.find('GET /v1/agents'))
    place('MOD-28', places.disconnect)
    const word = (id: string, name: string | null): void =>
      name === null ? trial.leave(id, 'the description does not show it') : trial.note(id, name)
    word('GEN-32', places.idempotency)
    word('FIL-33', places.snapshot)
    word('LIM-41', places.budget === null ? null : `${places.budget.left}, ${places.budget.bucket}`)
    const create = schemas.properties(description.find('POST /v1/sessions')?.body)
    const agent = schemas.properties(create['agent'])
    const environment = schemas.properties(create['environment'])
    const fields = (schema: unknown): string => Object.keys(schemas.properties(schema)).join(', ')
    const listed = (words: readonly string[], ...stated: string[]): string | null =>
      words.filter((one) => !stated.includes(one)).join(', ') || null
    word('SES-51', listed(schemas.words(agent['approval_mode']), 'read_only'))
    word('SES-115', fields(create['input']) || null)
    word('SES-116', fields(environment['repo']) || null)
    word('SES-117', schemas.typesOf(environment['profiles']).join(' or ') || null)
    const text = schemas.properties(create['text'])
    word('TOO-48', listed(schemas.words(text['verbosity']), 'low'))
    word('TOO-49', fields(text['format']) || listed(schemas.words(text['format'])))
    const answerOf = (endpoint: string) => {
      const operation = description.find(endpoint)
      return operation === null ? null : description.success(operation)
    }
    const turn = entriesOf(description, 'GET /v1/sessions/{}/turns')
    word('STA-22', listed(schemas.words(turn['status']), 'working', 'completed', 'failed'))
    word('TRN-21', fields(turn['error']) || null)
    const item = entriesOf(description, 'GET /v1/sessions/{}/items')
    word('ITM-08', listed(schemas.words(item['type']), 'message', 'tool_call', 'mcp_unavailable'))
    const session = schemas.properties(answerOf('GET /v1/sessions/{}'))
    const state = schemas.properties(session['environment'])['state']
    word('STA-32', listed(schemas.words(state), 'running', 'unknown'))
    const outcome =
      places.answer === null ? undefined : schemas.properties(description.success(places.answer))['outcome']
    word('ACT-20', listed(schemas.words(outcome), 'not_delivered'))
    const gone = description.find('DELETE /v1/sessions/{}')
    word('SES-92', gone === null ? null : fields(description.success(gone)) || 'no body')
    word(
      'SES-128',
      listed(
        Object.keys(schemas.properties(answerOf('POST /v1/sessions/{}/fork'))),
        'forked_from',
        'workspace_copied',
      ),
    )
    word('TOO-53', fields(answerOf('PUT /v1/sessions/{}/tools')) || null)
    word('PRE-09', fields(description.find('POST /v1/sessions/{}/preview')?.body) || null)
    word('PRE-12', fields(answerOf('POST /v1/sessions/{}/preview')) || null)
    word('PRE-13', fields(answerOf('DELETE /v1/sessions/{}/preview')) || null)
    const files = schemas.properties(description.find('POST /v1/sessions/{}/files')?.body)['files']
    const entry = schemas.properties(schemas.resolve(files)['items'])
    word(
      'FIL-42',
      listed(schemas.words(entry['type']), 'inline') ?? (entry['type'] === undefined ? null : 'none'),
    )
    word(
      'MOD-18',
      listed(
        Object.keys(entriesOf(description, 'GET /v1/model-connectors')),
        'id',
        'default_model',
        'key_prefix',
      ),
    )
    const artifact =
      places.artifacts === null
        ? {}
        : schemas.properties(
            schemas.resolve(schemas.properties(description.success(places.artifacts))['data'])['items'],
          )
    word('ART-05', listed(Object.keys(artifact), 'id'))
    const said = places.message === null ? {} : schemas.properties(description.success(places.message))
    word('INP-05', listed(Object.keys(said), 'queued', 'position', 'queue_position'))
    const known = new Set(STREAM_EVENTS.map(([name]) => name))
    const stop = examplesIn(description.document).find(
      (example) =>
        isObject(example) &&
        JSON.stringify(example).includes('"from_seq"') &&
        !known.has(textAt(example, 'type')),
    )
    word('EVT-36', textAt(stop, 'type') || null)
  },
  [],
)

/** The properties that the description gives to an entry of a list. */
function entriesOf(description: Description, endpoint: string): Record<string, unknown> {
  const operation = description.find(endpoint)
  if (operation === null) return {}
  const { schemas } = description
  const list = schemas.properties(description.success(operation))
  return schemas.properties(schemas.resolve(list['data'])['items'])
}

export const openChecks: readonly Check[] = [open]
