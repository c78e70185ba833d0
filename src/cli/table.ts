import { cut, pad, visible, type Paint, type Style } from './terminal.ts'

export interface Column<Row> {
  title: string
  cell(row: Row): string
  align?: 'left' | 'right'
  /** Minimum width: later rows line up with earlier ones. */
  least?: number
  /** The column may be cut to this many characters if the screen is too narrow. */
  shrink?: number
  style?(row: Row): Style | null
}

const GAP = '  '

/**
 * Rows under their titles, aligned; on a screen no line is longer than `width`. `titled` false: later rows of a table
 * whose columns have a `least` width.
 */
export function renderTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  screen: { width: number | null; paint: Paint },
  titled = true,
): string {
  const cells = rows.map((row) => columns.map((column) => visible(column.cell(row)) || '-'))
  const widths = columns.map(({ title, least = 0 }, index) =>
    Math.max(title.length, least, ...cells.map((row) => Array.from(row[index] ?? '').length)),
  )
  fit(widths, columns, screen.width)
  const line = (texts: string[], paint: (text: string, index: number) => string): string =>
    texts
      .map((text, index) => {
        const last = index === texts.length - 1 && columns[index]?.align !== 'right'
        const width = widths[index] ?? 0
        const short = cut(text, width)
        return paint(last ? short : pad(short, width, columns[index]?.align), index)
      })
      .join(GAP)
      .trimEnd()
  const titles = line(
    columns.map((column) => column.title),
    (text) => screen.paint('dim', text),
  )
  const lines = rows.map((row, number) =>
    line(cells[number] ?? [], (text, index) => {
      const style = columns[index]?.style?.(row) ?? null
      return style === null ? text : screen.paint(style, text)
    }),
  )
  return `${[...(titled ? [titles] : []), ...lines].join('\n')}\n`
}

/** Cuts the columns that may be cut, the widest first, until the row fits. */
function fit(widths: number[], columns: readonly Column<never>[], width: number | null): void {
  if (width === null) return
  let over = widths.reduce((sum, one) => sum + one, GAP.length * (widths.length - 1)) - width
  while (over > 0) {
    const spare = columns.map(({ shrink }, index) =>
      shrink === undefined ? 0 : (widths[index] ?? 0) - shrink,
    )
    const widest = spare.indexOf(Math.max(...spare))
    if ((spare[widest] ?? 0) <= 0) return
    widths[widest] = (widths[widest] ?? 0) - 1
    over--
  }
}
