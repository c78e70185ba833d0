import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { reportFailure } from '../../../src/cli/failure.ts'
import { OperatorError } from '../../../src/std/errors.ts'
import { logged } from './log.ts'

/** What is found in a log with these lines. */
function find(text: string): string[] {
  const folder = mkdtempSync(path.join(tmpdir(), 'torture-log-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'sidecar.log')
  writeFileSync(file, text)
  return logged({ world: { logs: [file] } }).map(({ message }) => message)
}

/** The last words of the program when it ends by an error. */
function lastWords(error: unknown): string {
  const words: string[] = []
  reportFailure(error, { err: (text) => words.push(text), paintErr: (_, text) => text })
  return words.join('')
}

it('finds the end by an error that the program does not know, in the words of the program', () => {
  expect(find(lastWords(new Error('the leases are gone')))).toEqual([
    expect.stringContaining('the leases are gone'),
  ])
})

it('finds an error that only a bug causes, with its stack', () => {
  const line = JSON.stringify({ err: { type: 'TypeError', stack: 'at x' }, msg: 'a handler failed' })
  expect(find(`${line}\n`)).toEqual([line])
})

it('finds nothing in what an operator can fix', () => {
  expect(find(lastWords(new OperatorError('store: no PostgreSQL answers')))).toEqual([])
})
