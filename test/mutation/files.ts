/** The pure parts, below `src`, and the tests that are to see any change of them, below `test`. */
export const FILES: Readonly<Record<string, readonly string[]>> = {
  'core/backoff.ts': ['deliver/module', 'deliver/worker', 'core/'],
  'core/member.ts': ['core/member'],
  'core/retry-after.ts': ['deliver/http', 'core/'],
  'core/seq.ts': ['core/', 'source/stream', 'admin/relay.'],
  'core/signature.ts': ['admin/guard', 'source/webhook', 'library/verify', 'deliver/http', 'core/'],
  'intake/diff.ts': ['intake/diff'],
  'intake/facts.ts': ['intake/diff'],
  'intake/frame.ts': ['intake/frame', 'source/stream'],
  'intake/notice.ts': ['intake/notice'],
  'service/discovery.ts': ['service/discovery', 'service/whole'],
  'service/explorer.ts': ['service/client', 'service/discovery'],
  'service/find.ts': ['service/discovery', 'service/whole'],
  'service/find-operation.ts': ['service/whole'],
  'service/headers.ts': ['service/discovery', 'service/budget'],
  'service/path.ts': ['service/discovery', 'service/whole', 'service/client'],
}
