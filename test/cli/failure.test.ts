import { expect, test } from 'vitest'
import { reportFailure } from '../../src/cli/failure.ts'
import { jsonLine, plain } from '../../src/cli/terminal.ts'
import { OperatorError } from '../../src/std/errors.ts'
import { StoreError } from '../../src/core/store-error.ts'

function reported(error: unknown): { code: number; said: string } {
  let said = ''
  const terminal = {
    out: () => undefined,
    err: (text: string) => void (said += text),
    width: null,
    paint: plain,
    paintErr: plain,
  }
  return { code: reportFailure(error, terminal), said }
}

test('what another program says goes to the terminal without its control characters', () => {
  const error = new OperatorError('http://x answered 409: a\u001b]0;b\u0007\u001b[2Jc\u009bd')
  const { code, said } = reported(error)
  expect(code).toBe(1)
  expect(said).toBe('error: http://x answered 409: a ]0;b [2Jc d\n')
  expect(jsonLine({ title: 'a\u009b2J\u202eb' })).toBe('{"title":"a\\u009b2J\\u202eb"}\n')
})

test('a full disk at the start is reported in a sentence, without a stack', () => {
  const { code, said } = reported(new StoreError('full', new Error('database or disk is full')))
  expect(code).toBe(1)
  expect(said).toBe('error: the store cannot be written; is the disk full? (database or disk is full)\n')
})

test.each([
  ['ENOSPC', 'all watches of this user are in use', 'max_user_watches'],
  ['EMFILE', 'too many programs of this user watch files', 'max_user_instances'],
])('a folder that cannot be watched (%s) is no full disk', (code, cause, limit) => {
  const { said } = reported(Object.assign(new Error(code), { code, syscall: 'watch', path: '/app' }))
  expect(said).toMatch(new RegExp(`^error: /app cannot be watched: ${cause}\\n {2}fix: .*${limit}\\n$`))
  const full = reported(Object.assign(new Error(code), { code, syscall: 'write', path: '/app' }))
  expect(full.said).not.toContain('watch')
})
