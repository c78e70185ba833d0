import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Tests talk to real sockets and real files, and wait a good deal: one more than the two cores that CI has.
    maxWorkers: 3,
    // Nothing of a test file outlives it in its modules, so that the next need not load the program anew.
    isolate: false,
    testTimeout: 20_000,
    hookTimeout: 20_000,
    expect: { poll: { timeout: 10_000 } },
  },
})
