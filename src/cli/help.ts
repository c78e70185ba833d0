/** Of `--config`, which several commands need. */
export const CONFIG = 'configuration, YAML or JSON (required)'

export function examples(lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}`
}
