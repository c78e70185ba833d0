import type { Scene } from './scene.ts'

/** Waits until `ms` have passed (null: without a limit), or until the turn is steered or ends. */
export async function wait({ world, run }: Scene, ms: number | null): Promise<void> {
  const { signal } = run.controller
  const steered = new Promise<void>((resolve) => {
    run.interrupt = resolve
  })
  const enough = new AbortController()
  const either = AbortSignal.any([signal, enough.signal])
  const time = ms === null ? aborted(either) : world.clock.wait(ms, either)
  try {
    await Promise.race([time, steered])
  } finally {
    run.interrupt = null
    enough.abort(new Error('no longer waited for'))
  }
}

/** Never resolves; rejects with the reason when `signal` is aborted. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}
