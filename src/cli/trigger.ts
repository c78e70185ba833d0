import { doubtAbout } from '../core/event-type.ts'
import { OperatorError } from '../std/errors.ts'
import { isObject, parseJson, type JsonObject } from '../std/json.ts'
import { encodeId } from '../std/path.ts'
import { adminClient, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { field, quoted } from './reply.ts'
import { jsonLine, visible } from './terminal.ts'
import { span } from './text.ts'

interface TriggerOptions extends AdminOptions {
  handler: string
  data?: string
  json?: boolean
}

const OUTCOMES: Readonly<Record<string, string>> = {
  delivered: 'accepted it',
  retry: 'failed; a real fact would be retried',
  dead: 'refused it for good; a real fact would become a dead letter',
  unreachable: 'is unreachable; real facts wait for it',
  gone: 'answered 410; a real fact would pause it',
  aborted: 'did not answer before the sidecar stopped',
}

const WRONG_SECRET = '  fix: if it refuses the signature, give the app the secret of the configuration\n'

/** Sends a test fact to a handler and prints the outcome; exit 1 if it was not accepted. */
export async function trigger(
  { terminal, env }: Context,
  options: TriggerOptions,
  [type = '']: string[],
): Promise<number> {
  const data = dataOf(options.data)
  const client = await adminClient(options, env)
  const path = `/api/handlers/${encodeId(options.handler)}/test`
  const answer = await client.post(path, { type, data })
  const outcome = field(answer, 'outcome')
  const good = outcome === 'delivered'
  if (options.json === true) terminal.out(jsonLine(answer))
  else {
    const mark = good ? terminal.paint('green', '✓') : terminal.paint('red', '✗')
    terminal.out(`${mark} ${options.handler} ${OUTCOMES[outcome] ?? visible(outcome)} (${detail(answer)})\n`)
    terminal.out(quoted(field(answer, 'answer'), terminal))
    const { status } = answer
    if (status === 401 || status === 403) terminal.err(WRONG_SECRET)
    if (answer['wanted'] === false)
      terminal.err(
        `${terminal.paintErr('yellow', 'warning:')} the events of ${options.handler} do not include ${type}: it gets no real facts of this type\n`,
      )
    // Types newer than this program can be tested too.
    const doubt = doubtAbout(type)
    if (doubt !== null)
      terminal.err(`${terminal.paintErr('yellow', 'warning:')} "${visible(type)}" ${doubt}\n`)
  }
  return good ? 0 : 1
}

/** `status 204, 3 ms, evt_test_…`. */
function detail(answer: JsonObject): string {
  const { ms } = answer
  const status = field(answer, 'status')
  const parts = [
    status === '' ? '' : `status ${status}`,
    visible(field(answer, 'error')),
    typeof ms === 'number' ? span(ms) : '',
    visible(field(answer, 'id')),
  ]
  return parts.filter((part) => part !== '').join(', ')
}

function dataOf(text: string | undefined): JsonObject {
  if (text === undefined) return {}
  let data: unknown
  try {
    data = parseJson(text)
  } catch {
    data = null
  }
  if (isObject(data)) return data
  throw new OperatorError('--data must be a JSON object, such as \'{"turn":{"status":"failed"}}\'', 2)
}
