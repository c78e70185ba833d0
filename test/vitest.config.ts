import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/setup.ts'],
    // Tests wait for sockets, files and processes about half of the time: twice the two cores that CI has.
    maxWorkers: 4,
    // Nothing of a test file outlives it in its modules, so that the next need not load the program anew.
    isolate: false,
    // Longer than any wait within a test, each of which says better what did not come.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
  },
})
