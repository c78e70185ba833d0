import { expect, test } from 'vitest'
import { renderTable, type Column } from '../../src/cli/table.ts'
import { plain } from '../../src/cli/terminal.ts'
import { count, relative, span } from '../../src/cli/text.ts'

interface Row {
  name: string
  text: string
  size: number
}

const columns: Column<Row>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'TEXT', cell: ({ text }) => text, shrink: 6 },
  { title: 'SIZE', cell: ({ size }) => String(size), align: 'right' },
]
const rows = [
  { name: 'a', text: 'a text that is rather long', size: 5 },
  { name: 'bc', text: '', size: 1234 },
]

test('a table is aligned, numbers to the right, and says where there is nothing', () => {
  expect(renderTable(rows, columns, { width: null, paint: plain })).toBe(
    [
      'NAME  TEXT                        SIZE\n',
      'a     a text that is rather long     5\n',
      'bc    -                           1234\n',
    ].join(''),
  )
})

test('a table fits the screen by cutting what may be cut, and no further', () => {
  expect(renderTable(rows, columns, { width: 24, paint: plain })).toBe(
    ['NAME  TEXT          SIZE\n', 'a     a text that…     5\n', 'bc    -             1234\n'].join(''),
  )
  expect(renderTable(rows, columns, { width: 5, paint: plain })).toContain('a     a tex…     5\n')
})

test('a cell is one line, also if its text has line breaks', () => {
  const hostile = [{ name: 'x\n\u001b[31mred\u0007', text: 'y\u202etxet', size: 0 }]
  expect(renderTable(hostile, columns, { width: null, paint: plain })).toBe(
    'NAME       TEXT    SIZE\nx [31mred  y txet     0\n',
  )
})

test('amounts and times read as a person says them', () => {
  expect([count(1, 'fact'), count(2, 'fact'), count(0, 'delivery', 'deliveries')]).toEqual([
    '1 fact',
    '2 facts',
    '0 deliveries',
  ])
  expect([4.4, 1234, 12_345, 90_000, 7_200_000, 259_200_000].map(span)).toEqual([
    '4 ms',
    '1.2 s',
    '12 s',
    '2 min',
    '2 h',
    '3 d',
  ])
  expect([relative(null, 0), relative(1000, 61_000), relative(61_000, 1000)]).toEqual([
    '',
    '1 min ago',
    'in 1 min',
  ])
})
