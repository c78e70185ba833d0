/** Of `--config`: flags, what it is, and the file that `init` writes. */
export const CONFIG = ['-c, --config <file>', 'configuration, YAML or JSON', 'sidecar.yaml'] as const

export function examples(lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}`
}
