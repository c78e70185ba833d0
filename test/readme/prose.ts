/** A sentence longer than this has to be read twice. Words. */
export const SENTENCE_MOST = 35
/** A cell longer than this is a paragraph that was forced into a table. Characters. */
export const CELL_MOST = 160

/** The sentences of a document: of its paragraphs, list items and cells, without headings and blocks of code. */
export function sentencesOf(document: string): string[] {
  const prose = document
    .replaceAll(/^```[^\n]*\n.*?^```$/gms, '\n')
    .replaceAll(/<!--.*?-->/gs, '')
    .replaceAll(/^#+ .*$/gm, '')
  return prose
    .split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n?^\|[^\n]*$/gm)
    .concat(cellsOf(document).flat())
    .flatMap((paragraph) => sentences(paragraph))
}

function sentences(paragraph: string): string[] {
  return paragraph
    .replaceAll(/`[^`]*`/g, 'CODE')
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/\s+/g, ' ')
    .split(/(?<=[.!?][)"*_]*) (?=[A-Z0-9"(*_])/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '')
}

/** The number of words; a piece of code is one. */
export function wordsOf(sentence: string): number {
  return sentence.split(' ').filter((word) => /\w/.test(word)).length
}

/** The cells of every row of its tables. */
export function cellsOf(document: string): string[][] {
  return document
    .replaceAll(/^```[^\n]*\n.*?^```$/gms, '')
    .split('\n')
    .filter((line) => /^\|.*\|$/.test(line))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    )
    .filter((row) => !row.every((cell) => /^:?-+:?$/.test(cell)))
}
