import { stat } from 'node:fs/promises'
import { messageOf } from '../../std/errors.ts'
import type { Clock, Timer } from '../../std/ports.ts'
import type { Config, SecretOwner, SecretSource } from './config.ts'
import { readParts } from './secrets.ts'

/** Milliseconds between checks. A rotated token should be used within seconds, and reading a few bytes costs little. */
const INTERVAL = 2000

/** New secrets of one owner, as now read from its files. */
export type SecretChange = SecretOwner & { secrets: string[] }

export interface SecretWatch {
  /** Checks now instead of at the next interval. */
  check(): Promise<void>
  stop(): void
}

/**
 * Reads the secret files periodically and reports changes. It compares content, not modification times: Kubernetes
 * replaces a symbolic link further up the path, which no time of the file shows. If a file is missing, empty or
 * invalid, the old secret stays in force and one warning is logged.
 * @param options.interval milliseconds.
 */
export function watchSecrets(
  config: Pick<Config, 'secretFiles'>,
  onChange: (change: SecretChange) => void,
  options: { clock: Clock; warn: (message: string) => void; interval?: number },
): SecretWatch {
  const { clock, warn, interval = INTERVAL } = options
  const watched = config.secretFiles.map((source): Watched => ({
    source,
    current: source.secrets,
    warning: '',
    looking: null,
  }))
  let timer: Timer | null = null
  let stopped = false

  async function look(one: Watched): Promise<void> {
    // To open a pipe would block until a process writes to it. So for a pipe, the secret that was read at the start
    // stays.
    if (!(await areFiles(one.source))) return
    let secrets: string[]
    try {
      secrets = await readParts(one.source.parts)
      one.warning = ''
    } catch (error) {
      const warning = messageOf(error)
      if (!stopped && warning !== one.warning) warn(`${warning}; the last valid secret is used`)
      one.warning = warning
      return
    }
    if (stopped || same(secrets, one.current)) return
    one.current = secrets
    onChange({ ...one.source.owner, secrets })
  }

  /** Starts no second read of a file whose disk hangs. The other files are still checked. */
  function lookOnce(one: Watched): Promise<void> {
    one.looking ??= look(one).finally(() => (one.looking = null))
    return one.looking
  }

  async function check(): Promise<void> {
    await Promise.all(watched.map(lookOnce))
  }

  function schedule(): void {
    timer = clock.after(interval, () => {
      void check()
      schedule()
    })
  }

  if (watched.length > 0) schedule()
  return {
    check,
    stop() {
      stopped = true
      timer?.cancel()
    },
  }
}

interface Watched {
  source: SecretSource
  current: string[]
  /** The last warning; empty while there is none. */
  warning: string
  looking: Promise<void> | null
}

async function areFiles({ parts }: SecretSource): Promise<boolean> {
  const regular = await Promise.all(
    parts.map(async (part) => part.kind === 'value' || (await isFileOrGone(part.file))),
  )
  return regular.every(Boolean)
}

/** A missing file counts as regular: reading it reports the fault. */
async function isFileOrGone(file: string): Promise<boolean> {
  try {
    const found = await stat(file)
    return found.isFile() || found.isDirectory()
  } catch {
    return true
  }
}

function same(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index])
}
