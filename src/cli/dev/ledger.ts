import { request } from 'undici'
import type { LedgerView } from '../../emulator/index.ts'

/** The true events, read from the emulator's own route. */
export async function readLedger(baseUrl: string): Promise<LedgerView> {
  const { body } = await request(`${baseUrl}/_emulator/ledger`)
  return (await body.json()) as LedgerView
}
