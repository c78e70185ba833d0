import { mutant, type Mutant } from './mutant.ts'

/** Bugs in the service's client. */
export const CLIENT: readonly Mutant[] = [
  mutant('a 401 is retried', 'client/transport/requester.ts', 'authorization.reject(token)', 'void token'),
  mutant(
    'a used-up budget is asked again at once',
    'client/transport/budget.ts',
    'const added = Math.min(SPREAD.share * wait, SPREAD.max) * random.next()',
    'const added = -0.95 * wait',
  ),
  mutant(
    'waiters of a closed budget are forgotten',
    'client/transport/budget.ts',
    '      this.#admit(bucket)\n    })\n  }',
    '    })\n  }',
  ),
  mutant(
    'an unavailable directory is a 401',
    'client/transport/requester.ts',
    "code !== 'directory_unavailable' && operation !== 'discover'\n    if (status === 401 &&",
    "operation !== 'discover'\n    if ((status === 401 || code === 'directory_unavailable') &&",
  ),
  mutant(
    'a directory that is unavailable holds one operation alone',
    'client/transport/requester.ts',
    'budget.hold(error)',
    'void budget',
  ),
  mutant(
    'a directory that is unavailable holds one bucket alone',
    'client/transport/requester.ts',
    'budget.hold(error)',
    'budget.close(bucket ?? this.#bucketOf(operation), retryAfter)',
  ),
  mutant(
    'a stream is opened though every request waits',
    'client/transport/events.ts',
    'if (budget.wait(bucket) > 0) throw',
    'if (budget.wait(bucket) > 1e9) throw',
  ),
  mutant(
    'a stop leaves its timers',
    'client/transport/budget.ts',
    '        waiter.timer.cancel()\n        waiter.fail(error)',
    '        waiter.fail(error)',
  ),
  mutant(
    'polling goes on after the stop',
    'sidecar/source/poll.ts',
    'for (const timer of timers) timer.cancel()',
    '',
  ),
]
