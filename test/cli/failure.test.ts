import { expect, test } from 'vitest'
import { reportFailure } from '../../src/cli/failure.ts'
import { plain } from '../../src/cli/terminal.ts'
import { StoreError } from '../../src/store/error.ts'

test('a disk that is full at the start is told in a sentence, without a stack', () => {
  let said = ''
  const terminal = {
    out: () => undefined,
    err: (text: string) => void (said += text),
    width: null,
    paint: plain,
    paintErr: plain,
  }
  expect(reportFailure(new StoreError('full', new Error('database or disk is full')), terminal)).toBe(1)
  expect(said).toBe('error: the store cannot be written; is the disk full? (database or disk is full)\n')
})
