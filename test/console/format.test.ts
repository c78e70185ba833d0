import { expect, it, onTestFinished, vi } from 'vitest'
import { clock, date } from '../../src/sidecar/admin/console/web/format.js'

it('writes a time in the same way in every language, without its formatter, which is slow', () => {
  const formatter = vi.spyOn(Date.prototype, 'toLocaleTimeString').mockReturnValue('٠٠:٠٠:٠٠')
  onTestFinished(() => formatter.mockRestore())
  const at = new Date(2026, 10, 6).getTime()
  expect([clock(at), date(at + 3_723_000)]).toEqual(['00:00:00', '2026-11-06 01:02:03'])
})
