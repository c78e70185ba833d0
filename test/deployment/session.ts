import { request } from 'undici'

/** Creates a session at the emulator, whose turn calls the tool of the composed app. */
export async function createSession(port: number | undefined): Promise<void> {
  const created = await request(`http://127.0.0.1:${port}/v1/sessions`, {
    method: 'POST',
    headers: { authorization: 'Bearer svc_pat_dev', 'content-type': 'application/json' },
    body: JSON.stringify({
      agent: { tools: [{ type: 'function', name: 'lookup_order', parameters: { type: 'object' } }] },
      input: { text: 'call lookup_order {"order_id":"42"}' },
    }),
  })
  const answer = await created.body.text()
  if (created.statusCode !== 201) throw new Error(`the emulator answered ${created.statusCode}: ${answer}`)
}

/** Sessions of which the app printed a settled turn: what was delivered just before a kill is delivered again. */
export function settledIn(output: string): number {
  return new Set(output.match(/^event turn\.settled \S+$/gm)).size
}
