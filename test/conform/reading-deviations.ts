import { fields, type Answer, type Asked, type Change } from './proxy.ts'

/** A planted behaviour and every rule that it breaks, no more and no less. */
export interface Deviation extends Change {
  name: string
  breaks: string
  /** Rules that are looked at; all when left out. */
  only?: string
}

const failing = ({ status }: Answer): boolean => status >= 400
const gets = ({ method, path }: Asked, wanted: string): boolean => method === 'GET' && path === wanted
const rows = (answer: Answer): unknown[] => {
  const { data } = fields(answer.body)
  return Array.isArray(data) ? (data as unknown[]) : []
}
const strip = (answer: Answer, name: string): void => {
  delete answer.headers[name]
}

/** What the description says, changed. */
function description(change: (document: Record<string, never>) => void): Change {
  return {
    answer: (asked, answer) => {
      if (gets(asked, '/v1/openapi.json')) change(answer.body as Record<string, never>)
    },
  }
}

/** Deviations that show without --write, on an account with three sessions and one webhook. */
export const READING: readonly Deviation[] = [
  {
    name: 'limit=101 is clamped',
    breaks: 'ERR-09 LIM-03',
    ask: ({ query }) => {
      if (query.get('limit') === '101') query.set('limit', '100')
    },
  },
  {
    name: 'limit=0 means the default',
    breaks: 'LIM-03',
    ask: ({ query }) => {
      if (query.get('limit') === '0') query.delete('limit')
    },
  },
  {
    name: 'errors have no request_id',
    breaks: 'ERR-01 ERR-02',
    answer: (_asked, answer) => {
      if (failing(answer)) delete fields(fields(answer.body)['error'])['request_id']
    },
  },
  {
    name: 'a 400 carries data',
    breaks: 'ERR-48',
    answer: (_asked, answer) => {
      if (answer.status === 400) fields(answer.body)['data'] = []
    },
  },
  {
    name: 'unknown query parameters are ignored',
    breaks: 'ERR-05',
    ask: ({ query }) => {
      for (const name of Array.from(query.keys())) if (/x$|^conform$/.test(name)) query.delete(name)
    },
  },
  {
    name: 'the refusal of a query parameter names no other',
    breaks: 'GEN-26',
    answer: ({ query }, answer) => {
      if (answer.status === 400 && query.has('limitx'))
        fields(fields(answer.body)['error'])['message'] = 'unknown query parameter limitx'
    },
  },
  {
    name: 'JSON is sent as text/plain',
    breaks: 'GEN-07',
    answer: (_asked, answer) => {
      if (String(answer.headers['content-type']).includes('json'))
        answer.headers['content-type'] = 'text/plain'
    },
  },
  {
    name: 'a CORS header is sent',
    breaks: 'GEN-11',
    answer: (_asked, answer) => {
      answer.headers['access-control-allow-origin'] = '*'
    },
  },
  {
    name: 'a 401 has no WWW-Authenticate',
    breaks: 'AUT-26',
    answer: (_asked, answer) => strip(answer, 'www-authenticate'),
  },
  {
    name: 'a rejected token is a 403',
    breaks: 'AUT-01 AUT-25',
    answer: (_asked, answer) => {
      if (answer.status === 401) answer.status = 403
    },
  },
  {
    name: 'what is not there is a 400',
    breaks: 'ERR-20 ERR-21',
    answer: (_asked, answer) => {
      if (answer.status === 404) answer.status = 400
    },
  },
  {
    name: 'has_more is always true',
    breaks: 'LIM-63 LIM-65',
    answer: (_asked, answer) => {
      const body = fields(answer.body)
      if ('has_more' in body) body['has_more'] = true
    },
  },
  {
    name: 'a list has no object',
    breaks: 'GEN-22',
    answer: ({ path }, answer) => {
      if (path === '/v1/webhooks') delete fields(answer.body)['object']
    },
  },
  {
    name: 'an unknown cursor gives the first page',
    breaks: 'LIM-63',
    ask: ({ query }) => query.delete('after'),
  },
  {
    name: 'sessions are listed the oldest first',
    breaks: 'LIM-68',
    ask: (asked) => {
      if (gets(asked, '/v1/sessions') && !asked.query.has('order')) asked.query.set('order', 'asc')
    },
  },
  {
    name: 'the status filter is not read',
    breaks: 'ERR-06 SES-125',
    ask: ({ query }) => query.delete('status'),
  },
  {
    name: 'environment profiles take an order',
    breaks: 'LIM-71',
    ask: ({ path, query }) => {
      if (path.endsWith('/environment-profiles')) query.delete('order')
    },
  },
  {
    name: 'sessions in a list lack their required_actions',
    breaks: 'SES-83',
    answer: (asked, answer) => {
      if (gets(asked, '/v1/sessions')) for (const row of rows(answer)) delete fields(row)['required_actions']
    },
  },
  {
    name: 'the id of a session is no UUID',
    breaks: 'SES-02',
    answer: ({ path }, answer) => {
      if (/^\/v1\/sessions\/[^/]+$/.test(path) && answer.status === 200) fields(answer.body)['id'] = 'sess_1'
    },
  },
  {
    name: 'times are in seconds',
    breaks: 'GEN-20 SES-08',
    answer: ({ path }, answer) => {
      const body = fields(answer.body)
      if (/^\/v1\/sessions\/[^/]+$/.test(path) && answer.status === 200)
        body['created_at'] = Math.round(Number(body['created_at']) / 1000)
    },
  },
  {
    name: 'a session has an environment.branch',
    breaks: 'SES-42',
    answer: ({ path }, answer) => {
      if (/^\/v1\/sessions\/[^/]+$/.test(path)) fields(fields(answer.body)['environment'])['branch'] = 'main'
    },
  },
  {
    name: 'a session shows the secret of the token that made it',
    breaks: 'SES-22',
    answer: ({ path, headers }, answer) => {
      if (/^\/v1\/sessions\/[^/]+$/.test(path) && answer.status === 200)
        fields(answer.body)['created_by_token'] = headers['authorization']?.slice('Bearer '.length)
    },
  },
  {
    name: 'the webhook list shows secrets',
    breaks: 'WHS-11',
    answer: (asked, answer) => {
      if (gets(asked, '/v1/webhooks')) for (const row of rows(answer)) fields(row)['secret'] = 'shown'
    },
  },
  {
    name: 'the list of connections shows keys',
    breaks: 'MOD-12 MOD-14',
    answer: (asked, answer) => {
      if (gets(asked, '/v1/model-credentials'))
        for (const row of rows(answer)) fields(row)['key'] = 'sk-shown'
    },
  },
  {
    name: 'health does not say whether the token is usable',
    breaks: 'HLT-05',
    answer: (asked, answer) => {
      if (gets(asked, '/v1/health')) delete fields(answer.body)['usable']
    },
  },
  {
    name: 'GET /v1 does not point to the description',
    breaks: 'HLT-08',
    answer: (_asked, answer) => strip(answer, 'link'),
  },
  {
    name: 'the remaining budget is not reported',
    breaks: 'LIM-39',
    answer: (_asked, answer) => strip(answer, 'x-ratelimit-remaining'),
  },
  {
    name: 'the bucket is not named',
    breaks: 'LIM-40',
    answer: (_asked, answer) => strip(answer, 'x-ratelimit-bucket'),
  },
  {
    name: 'event streams are text/plain',
    breaks: 'GEN-08',
    answer: (_asked, answer) => {
      if (String(answer.headers['content-type']).startsWith('text/event-stream'))
        answer.headers['content-type'] = 'text/plain'
    },
  },
  {
    name: 'a stream has no retry hint',
    breaks: 'EVT-29',
    frame: (block) => (block.startsWith('retry:') ? null : block),
  },
  {
    name: 'the description lacks an endpoint',
    breaks: 'HLT-11',
    ...description(({ paths }) => delete paths?.['/v1/sessions/{session_id}/fork']),
  },
  {
    name: 'the description lacks a query parameter',
    breaks: 'HLT-12',
    ...description(({ paths }) => {
      const get = fields(fields(paths)['/v1/sessions'])['get']
      const all = fields(get)['parameters'] as { name: string }[]
      fields(get)['parameters'] = all.filter(({ name }) => name !== 'metadata')
    }),
  },
  {
    name: 'the description does not say what scope turns need',
    breaks: 'AUT-33 HLT-14',
    ...description(({ paths }) => {
      const get = fields(fields(fields(paths)['/v1/sessions/{session_id}/turns'])['get'])
      delete get['security']
      delete get['x-required-scope']
    }),
  },
  {
    name: 'the description has no example of an event',
    breaks: 'EVT-43 HLT-15',
    ...description(({ paths }) => {
      const text = JSON.stringify(paths).replaceAll('"type":"agent.compaction"', '"type":"agent.compacted"')
      Object.assign(paths ?? {}, JSON.parse(text))
    }),
  },
  {
    name: 'the template read is not deprecated',
    breaks: 'VER-13',
    ...description(({ paths }) => {
      delete fields(fields(fields(paths)['/v1/environment-templates/{template_id}'])['get'])['deprecated']
    }),
  },
]
