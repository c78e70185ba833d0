import { serve } from './serve.ts'

/** A fresh process that starts one emulator and reports the duration of each part. */

serve({
  async start() {
    const from = performance.now()
    const { startEmulator } = await import('../../../src/emulator/index.ts')
    const imported = performance.now()
    const emulator = await startEmulator()
    const started = performance.now()
    const reply = await fetch(`${emulator.baseUrl}/v1/openapi.json`)
    if (!reply.ok) throw new Error(`the emulator answered ${reply.status}`)
    await reply.arrayBuffer()
    await emulator.close()
    return { importing: imported - from, starting: started - imported }
  },
})
