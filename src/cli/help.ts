/** The option `--config`: flags, description, and its default, the file that `init` writes. */
export const CONFIG = ['-c, --config <file>', 'configuration, YAML or JSON', 'sidecar.yaml'] as const

export function examples(lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}`
}
