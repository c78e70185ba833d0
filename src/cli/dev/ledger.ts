import { request } from 'undici'
import type { LedgerView } from '../../emulator/index.ts'

/** What really happened, asked over the emulator's own route as any outsider could. */
export async function readLedger(baseUrl: string): Promise<LedgerView> {
  const { body } = await request(`${baseUrl}/_emulator/ledger`)
  return (await body.json()) as LedgerView
}
