/**
 * `npm run test:release`: also what is built from Debian's packages, the benchmarks on little input, all repetitions, the
 * replays of planted bugs, and the tests of e2e with both profiles on each engine.
 */
export const RELEASE = process.env['RELEASE'] === '1'

/** `npm run test:full`, which CI runs: many crash points and half of all random input. `npm test` plays a part of them. */
export const FULL = RELEASE || process.env['FULL'] === '1'

/** The part of repetitions that a person waits for, and that of CI. */
const PART = FULL ? 2 : 8

/** How often a test repeats itself with other input. */
export function repeats(times: number): number {
  return RELEASE ? times : Math.ceil(times / PART)
}

/** Of many cases that one test tries in the same way, a person waits for each so many one. */
const EACH = 4

export function some<T>(cases: readonly T[]): readonly T[] {
  return FULL ? cases : cases.filter((_, index) => index % EACH === 0)
}

export type ProfileName = 'a' | 'b'

/** Where the sidecar under test stores. */
export const ENGINE = process.env['SIDECAR_TEST_STORE'] === 'postgres' ? 'PostgreSQL' : 'SQLite'

/** The emulator's two ways to fill in what the interface leaves open. A person waits for the tests of one. */
export const PROFILES: readonly ProfileName[] = FULL ? ['a', 'b'] : ['a']

/**
 * Files that `npm test` leaves out unless files are named, by the beginning of their path: what is built and published, what
 * needs programs that a bare machine lacks, what repeats, and what takes long. Single tests that take long are left out
 * by `runIf(FULL)`.
 */
export const FULL_ONLY = [
  'attack/',
  'conform/pings',
  'console/bad-days',
  'console/many',
  'console/pages',
  'deployment/engine',
  'examples/',
  'journey/',
  'package/package',
  'pictures/',
  'simulation/regression',
  'simulation/unreachable',
  'torture/',
]

/** Files that CI leaves out as well. The image is built in two minutes of two cores; the benchmarks are tried in one. */
export const RELEASE_ONLY = ['bench/run', 'deployment/built-image']
