import { fields, type Answer, type Asked } from './proxy.ts'
import type { Deviation } from './reading-deviations.ts'

const body = (asked: Asked | Answer) => fields(asked.body)
const creates = ({ method, path }: Asked): boolean => method === 'POST' && path === '/v1/sessions'
const isTools = ({ path }: Asked): boolean => path.endsWith('/tools')
const entriesOf = (asked: Asked): unknown[] => {
  const { tools } = body(asked)
  return Array.isArray(tools) ? (tools as unknown[]) : []
}
const rowsOf = (answer: Answer): unknown[] => {
  const { data } = body(answer)
  return Array.isArray(data) ? (data as unknown[]) : []
}

/** The data of a frame, changed. */
function data(change: (frame: Record<string, unknown>) => void): (block: string) => string {
  return (block) =>
    block
      .split('\n')
      .map((line) => {
        if (!line.startsWith('data:')) return line
        const frame = JSON.parse(line.slice(5)) as Record<string, unknown>
        change(frame)
        return `data: ${JSON.stringify(frame)}`
      })
      .join('\n')
}

/** Deviations that show with --write only. */
export const WRITING: readonly Deviation[] = [
  {
    name: 'unknown fields are ignored',
    breaks: 'ERR-04',
    only: 'ERR-04 GEN-24 GEN-25 SES-65',
    ask: (asked) => {
      for (const one of [body(asked), fields(body(asked)['agent'])])
        for (const name of ['titel', 'instruction', 'conform_stray']) delete one[name]
    },
  },
  {
    name: 'the refusal of an unknown field lists nothing',
    breaks: 'GEN-24 GEN-25 GEN-26',
    only: 'GEN-24..26 ERR-04',
    answer: (_asked, answer) => {
      const error = fields(body(answer)['error'])
      error['message'] = String(error['message'])
        .replace(/; did you mean.*/, '')
        .replace(/\(accepted.*/, '')
    },
  },
  {
    name: 'a new session is answered with 200',
    breaks: 'SES-66',
    only: 'SES',
    answer: (asked, answer) => {
      if (creates(asked) && answer.status === 201) answer.status = 200
    },
  },
  {
    name: 'titles are derived',
    breaks: 'SES-13',
    only: 'SES-12 SES-13 SES-75 GEN-27',
    answer: (asked, answer) => {
      if (creates(asked) && body(answer)['title'] === '') body(answer)['title'] = 'New session'
    },
  },
  {
    name: 'an empty PATCH is accepted',
    breaks: 'ERR-07',
    only: 'ERR-04 ERR-06 ERR-07 SES-118 SES-122',
    ask: (asked) => {
      if (asked.method !== 'PATCH' || Object.keys(body(asked)).length > 0) return
      asked.method = 'GET'
      asked.body = undefined
    },
  },
  {
    name: 'PATCH changes nothing',
    breaks: 'GEN-27 SES-10 SES-85 SES-86 SES-87 SES-88 SES-89 SES-90',
    only: 'SES-10 SES-85..91 GEN-27',
    ask: (asked) => {
      if (asked.method !== 'PATCH') return
      asked.method = 'GET'
      asked.body = undefined
    },
  },
  {
    name: 'metadata may hold numbers',
    breaks: 'ERR-11 SES-14',
    only: 'ERR-06 ERR-11 SES-14 SES-76',
    ask: (asked) => {
      const metadata = fields(body(asked)['metadata'])
      if (metadata['conform'] === 7) metadata['conform'] = '7'
    },
  },
  {
    name: 'per_step is an approval mode',
    breaks: 'ERR-06 SES-50',
    only: 'ERR-06 SES-50 SES-49',
    ask: (asked) => {
      const agent = fields(body(asked)['agent'])
      if (agent['approval_mode'] === 'per_step') agent['approval_mode'] = 'read_only'
    },
  },
  {
    name: 'fifty-one permission rules are accepted',
    breaks: 'LIM-13',
    only: 'LIM-10..14 SES-60',
    ask: (asked) => {
      const agent = fields(body(asked)['agent'])
      const rules = agent['permission_rules']
      if (Array.isArray(rules) && rules.length > 50) agent['permission_rules'] = rules.slice(0, 50)
    },
  },
  {
    name: 'a tool may have both url and command',
    breaks: 'TOO-24',
    only: 'TOO',
    ask: (asked) => {
      for (const tool of entriesOf(asked))
        if (fields(tool)['url'] !== undefined) delete fields(tool)['command']
    },
  },
  {
    name: 'a tool may have neither url nor command',
    breaks: 'TOO-25',
    only: 'TOO',
    ask: (asked) => {
      for (const tool of entriesOf(asked))
        if (fields(tool)['type'] === 'mcp' && Object.keys(fields(tool)).length === 2)
          fields(tool)['command'] = 'mcp'
    },
  },
  {
    name: 'PUT tools adds to what is there',
    breaks: 'TOO-31 TOO-39 TOO-55',
    only: 'TOO-30 TOO-31 TOO-39 TOO-50 TOO-55',
    answer: (asked, answer) => {
      if (asked.method === 'GET' && isTools(asked) && Array.isArray(body(answer)['tools']))
        (body(answer)['tools'] as unknown[]).push({ type: 'function', name: 'kept' })
    },
  },
  {
    name: 'secrets of MCP servers are shown',
    breaks: 'TOO-28',
    only: 'TOO-18 TOO-19 TOO-28 TOO-29',
    answer: (asked, answer) => {
      if (asked.method === 'GET' && isTools(asked)) body(answer)['headers'] = 'conform-secret-value'
    },
  },
  {
    name: 'redacted may be sent back',
    breaks: 'ERR-14',
    only: 'ERR-14 TOO-18 TOO-19 TOO-28 TOO-29',
    ask: (asked) => {
      for (const tool of entriesOf(asked)) delete fields(tool)['redacted']
    },
    answer: (asked, answer) => {
      if (asked.method === 'PUT' && answer.status === 400 && JSON.stringify(answer.body).includes('redacted'))
        answer.status = 200
    },
  },
  {
    name: 'idempotency values are not read',
    breaks: 'GEN-30 GEN-31',
    only: 'GEN-28..31',
    ask: ({ headers }) => {
      delete headers['idempotency-key']
    },
  },
  {
    name: 'a deleted session is still there',
    breaks: 'ERR-21 SES-91',
    only: 'ERR-21 SES-91 SES-92',
    answer: (asked, answer) => {
      if (answer.status === 404 && /^\/v1\/sessions\/[^/]+$/.test(asked.path) && asked.method === 'GET')
        Object.assign(answer, { status: 200, body: {} })
    },
  },
  {
    name: 'the metadata filter is not read',
    breaks: 'SES-123 SES-124 SES-82',
    only: 'SES-82 SES-84 SES-123..125',
    ask: ({ query }) => query.delete('metadata'),
  },
  {
    name: 'a message is answered with the turn that it will have',
    breaks: 'INP-06',
    only: 'INP STA-21',
    answer: ({ path }, answer) => {
      if (path.endsWith('/input') && answer.status === 202) body(answer)['turn_id'] = 'turn_early'
    },
  },
  {
    name: 'a message is answered with 200',
    breaks: 'GEN-29 INP-01 INP-03 LIM-09 STA-01 STA-19 STA-21',
    only: 'INP STA LIM-09 GEN-29',
    answer: ({ path }, answer) => {
      if (path.endsWith('/input') && answer.status === 202) answer.status = 200
    },
  },
  {
    name: 'steering with nothing running starts a turn',
    breaks: 'ERR-24 INP-09',
    only: 'ERR-24 INP',
    ask: (asked) => {
      if (body(asked)['type'] === 'input.steer' && String(body(asked)['text']).includes('nothing to steer'))
        body(asked)['type'] = 'input.message'
    },
    answer: (asked, answer) => {
      if (
        asked.method === 'GET' &&
        asked.path.endsWith('/turns') &&
        asked.query.size === 0 &&
        rowsOf(answer).length === 0
      )
        body(answer)['data'] = [{ object: 'turn', id: 'turn_started' }]
    },
  },
  {
    name: 'the sixth message is accepted',
    breaks: 'ERR-26 LIM-09',
    only: 'LIM-09 ERR-26 STA-01..04',
    answer: ({ path }, answer) => {
      if (path.endsWith('/input') && JSON.stringify(answer.body ?? '').includes('queue_full'))
        Object.assign(answer, { status: 202, body: { queued: true } })
    },
  },
  {
    name: 'the reply to a queued message has no position',
    breaks: 'STA-03',
    only: 'STA-01..04 LIM-09',
    answer: ({ path }, answer) => {
      if (path.endsWith('/input')) delete body(answer)['position']
    },
  },
  {
    name: 'a turn has an id of another kind',
    breaks: 'TRN-02',
    only: 'TRN',
    answer: ({ path }, answer) => {
      if (path.endsWith('/turns'))
        for (const row of rowsOf(answer))
          fields(row)['id'] = String(fields(row)['id']).replace('turn_', 'run_')
    },
  },
  {
    name: 'items do not name their event',
    breaks: 'ITM-05 ITM-06 ITM-10 ITM-13',
    only: 'ITM-01..13 ITM-17',
    answer: ({ path }, answer) => {
      if (path.endsWith('/items'))
        for (const row of rowsOf(answer)) delete fields(fields(row)['detail'])['event']
    },
  },
  {
    name: 'transient frames have an id line',
    breaks: 'EVT-15',
    only: 'EVT-08..18 EVT-63 EVT-67',
    frame: (block) => (block.includes('"seq":null') ? `id: 1\n${block}` : block),
  },
  {
    name: 'frames have no seq',
    breaks: 'EVT-13 EVT-14',
    only: 'EVT-08..14',
    frame: data((frame) => delete frame['seq']),
  },
  {
    name: 'frames have no internal_type',
    breaks: 'EVT-11',
    only: 'EVT-08..14 EVT-38..40',
    frame: data((frame) => delete frame['internal_type']),
  },
  {
    name: 'a replay begins at the beginning, whatever the cursor',
    breaks: 'EVT-17 EVT-21 EVT-23 EVT-27',
    only: 'EVT-04 EVT-17 EVT-18 EVT-21..27',
    ask: ({ headers }) => {
      if (headers['last-event-id'] !== undefined) headers['last-event-id'] = '0'
    },
  },
  {
    name: 'an API answer resolves a question',
    breaks: 'ACT-27 ACT-29',
    only: 'ACT-27 ACT-29 STA-07',
    answer: (asked, answer) => {
      if (
        asked.path.endsWith('/answers') &&
        answer.status === 400 &&
        JSON.stringify(answer.body).includes('question')
      )
        Object.assign(answer, { status: 200, body: { outcome: 'delivered' } })
    },
  },
  {
    name: 'an output may be an object',
    breaks: 'ACT-13 ACT-14',
    only: 'ACT-12..14 ACT-18',
    answer: (asked, answer) => {
      if (asked.path.endsWith('/answers') && typeof body(asked)['output'] === 'object')
        Object.assign(answer, { status: 200, body: { outcome: 'delivered' } })
    },
  },
  {
    name: 'the archive is octets of no kind',
    breaks: 'ART-08 GEN-10',
    only: 'ART GEN-09 GEN-10',
    answer: ({ path }, answer) => {
      if (path.endsWith('/archive')) answer.headers['content-type'] = 'application/octet-stream'
    },
  },
  {
    name: 'a file is read back cut',
    breaks: 'FIL-16 FIL-37',
    only: 'FIL-14..20 FIL-35..37',
    answer: ({ path }, answer) => {
      if (path.endsWith('/files/content') && body(answer)['content'] === 'twice')
        body(answer)['content'] = 'twi'
    },
  },
  {
    name: 'a webhook may be http',
    breaks: 'WHS-03',
    only: 'WHS-01..15',
    ask: (asked) => {
      const { url } = body(asked)
      if (typeof url === 'string' && url.startsWith('http://conform.invalid'))
        body(asked)['url'] = `${url.replace('http', 'https')}/plain`
    },
  },
  {
    name: 'the conflict of a subscription does not name it',
    breaks: 'WHS-15',
    only: 'WHS-01..15 ERR-23',
    answer: ({ path }, answer) => {
      if (path === '/v1/webhooks' && answer.status === 409)
        fields(body(answer)['error'])['message'] = 'it is there already'
    },
  },
  {
    name: 'deliveries are signed with another secret',
    breaks: 'WHS-28 WHS-29 WHS-30',
    only: 'WHS-16..30',
    answer: (asked, answer) => {
      if (asked.method === 'POST' && asked.path === '/v1/webhooks') body(answer)['secret'] = 'another'
    },
  },
  {
    name: 'a fork does not say whether the workspace was copied',
    breaks: 'SES-95',
    only: 'SES-93..95',
    answer: ({ path }, answer) => {
      if (path.endsWith('/fork')) delete body(answer)['workspace_copied']
    },
  },
  {
    name: 'last4 is in the list of connections',
    breaks: 'MOD-10 MOD-13',
    only: 'MOD',
    answer: (asked, answer) => {
      if (asked.method === 'GET' && asked.path === '/v1/model-credentials')
        for (const row of rowsOf(answer)) fields(row)['last4'] = 'wxyz'
    },
  },
  {
    name: 'a saved agent that is posted again is another',
    breaks: 'AGT-09 AGT-35 AGT-36',
    only: 'AGT-06..17 AGT-27..37',
    answer: (asked, answer) => {
      if (
        asked.method === 'POST' &&
        asked.path === '/v1/agents' &&
        body(asked)['instructions'] === 'Be kind.'
      )
        body(answer)['id'] = 'agent_other'
    },
  },
]
