import { messageOf } from '../core/errors.ts'
import type { Clock, Timer } from '../core/ports.ts'
import type { Config, SecretOwner, SecretSource } from './config.ts'
import { readParts } from './secrets.ts'

/** Milliseconds between looks. A rotated token should count within seconds; the files are a few bytes long. */
const INTERVAL = 2000

/** New secrets of one owner, as they now stand in its files. */
export type SecretChange = SecretOwner & { secrets: string[] }

export interface SecretWatch {
  /** Looks now instead of at the next interval. */
  check(): Promise<void>
  stop(): void
}

/**
 * Reads the files of secrets again and again and tells what changed. Content is compared, not times: that also sees
 * what Kubernetes does, which replaces a symbolic link some way up the path. A file that is gone, empty or unfit
 * leaves the old secret in force and is warned about once.
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
    complaint: '',
  }))
  let timer: Timer | null = null
  let stopped = false
  let looking: Promise<void> | null = null

  async function look(one: Watched): Promise<void> {
    let secrets: string[]
    try {
      secrets = await readParts(one.source.parts)
      one.complaint = ''
    } catch (error) {
      const complaint = messageOf(error)
      if (!stopped && complaint !== one.complaint) warn(`${complaint}; the last secret stays in force`)
      one.complaint = complaint
      return
    }
    if (stopped || same(secrets, one.current)) return
    one.current = secrets
    onChange({ ...one.source.owner, secrets })
  }

  async function lookAtAll(): Promise<void> {
    try {
      for (const one of watched) await look(one)
    } finally {
      looking = null
    }
  }

  function check(): Promise<void> {
    looking ??= lookAtAll()
    return looking
  }

  async function round(): Promise<void> {
    await check()
    if (!stopped) schedule()
  }

  function schedule(): void {
    timer = clock.after(interval, () => void round())
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
  /** What was warned about last; empty while all is well. */
  complaint: string
}

function same(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index])
}
