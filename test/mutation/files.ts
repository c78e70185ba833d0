/** The pure parts, below `src`, and the tests that are to see any change of them, below `test`. */
export const FILES: Readonly<Record<string, readonly string[]>> = {
  'core/backoff.ts': ['core/backoff'],
  'core/member.ts': ['core/member'],
  'core/retry-after.ts': ['core/retry-after'],
  'core/seq.ts': ['core/seq'],
  'core/signature.ts': ['core/signature'],
  'intake/diff.ts': ['intake/diff'],
  'intake/facts.ts': ['intake/facts'],
  'intake/frame.ts': ['intake/frame'],
  'intake/notice.ts': ['intake/notice'],
  'service/classify.ts': ['service/classify'],
  'service/discovery.ts': ['service/discovery.'],
  'service/explorer.ts': ['service/explorer'],
  'service/find.ts': ['service/find.'],
  'service/find-operation.ts': ['service/find-operation'],
  'service/headers.ts': ['service/headers'],
  'service/path.ts': ['service/path'],
}
