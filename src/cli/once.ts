import { InvalidArgumentError } from 'commander'

/** Refuses `--tool lookup_order --tool check_stock`: without this, the second would replace the first. */
export function onlyOne(text: string, before: unknown): string {
  if (typeof before !== 'string') return text
  throw new InvalidArgumentError(`It may be given once, and '${before}' was given already.`)
}
