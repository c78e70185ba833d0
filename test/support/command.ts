/**
 * What `read` makes of the command line of one of our programs. Ends the process with how it is used: with 0 where that
 * was asked for, with 2 where `read` throws a TypeError, as `parseArgs` does on what it does not know.
 */
export function readCommand<Options>(usage: string, read: (args: readonly string[]) => Options): Options {
  const args = process.argv.slice(2)
  if (args.includes('--help')) {
    process.stdout.write(usage)
    process.exit(0)
  }
  try {
    return read(args)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    process.stderr.write(`${error.message}\n\n${usage}`)
    process.exit(2)
  }
}

/** @throws {TypeError} unless `text`, which `name` was given, is a whole number from `least` on. */
export function wholeNumber(name: string, text: string, least = 1): number {
  const number = Number(text)
  if (text.trim() !== '' && Number.isSafeInteger(number) && number >= least) return number
  throw new TypeError(`--${name} must be a whole number from ${least}`)
}
