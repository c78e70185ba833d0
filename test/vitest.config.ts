import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { onPostgres } from './e2e/engines.ts'
import { FULL, FULL_ONLY, RELEASE, RELEASE_ONLY } from './support/full.ts'

/** The files that take longest, by the beginning of their path: first two that need a core for minutes, then those that wait. */
const LONG = [
  'simulation/exhaustive',
  'deployment/built-image',
  'store/differential',
  'examples/',
  'e2e/stream',
  'e2e/handler',
  'e2e/tool',
  'console/pages',
  'cli/forward',
  'package/package',
  'e2e/',
  'journey/',
  'cli/',
  'readme/story',
  'torture/',
  'conform/',
  'client/',
]

/** Files or folders are given, as in `npm test -- console`: a word that is neither a command, nor an option or its value. */
const isNamed = process.argv
  .slice(2)
  .some((word, at, words) => !/^(-|run$|list$)/.test(word) && !/^--?[^=]+$/.test(words[at - 1] ?? ''))

const leftOut = isNamed ? [] : [...(FULL ? [] : FULL_ONLY), ...(RELEASE ? [] : RELEASE_ONLY)]

/** A clean clone has no durations of an earlier run: a long file that begins last would keep everybody waiting for it. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const test = import.meta.dirname.length + 1
    const rank = ({ moduleId }: TestSpecification): number => {
      const found = LONG.findIndex((begin) => moduleId.slice(test).startsWith(begin))
      return found === -1 ? LONG.length : found
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'all',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...leftOut.map((begin) => `test/${begin}*`)],
        },
      },
      {
        extends: true,
        test: { name: 'PostgreSQL', include: onPostgres(), env: { SIDECAR_TEST_STORE: 'postgres' } },
      },
    ],
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/setup.ts'],
    // The long files wait three quarters of their time, for sockets, files and processes; CI has two cores.
    maxWorkers: 6,
    // Nothing of a test file outlives it in its modules, so that the next need not load the program anew.
    isolate: false,
    // Longer than any wait within a test, each of which says better what did not come.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 40_000 } },
  },
})
