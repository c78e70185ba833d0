import { InvalidArgumentError } from 'commander'

/** `--tool lookup_order --tool check_stock`: the second would silently replace the first. */
export function onlyOne(text: string, before: unknown): string {
  if (typeof before !== 'string') return text
  throw new InvalidArgumentError(`It follows '${before}', and may be given once.`)
}
