import { request } from 'undici'
import type { Config } from '../../sidecar/config/config.ts'
import { ByteBuffer } from '../../std/byte-buffer.ts'
import { messageOf } from '../../std/errors.ts'
import { isObject, parseJson, type JsonObject } from '../../std/json.ts'

/** Milliseconds for a request and its whole answer: a check takes at most five seconds. */
const TIMEOUT = 3000
/** Bytes of an answer that are read. */
const MAX_ANSWER = 8 * 1024 * 1024

export interface Answer {
  status: number
  body: JsonObject
  /** The service's clock minus ours, milliseconds; null when the answer had no date. */
  skew: number | null
  /** The reason for a missing answer; null when there was one. */
  fault: string | null
}

/** One request to the service. Never throws. */
export async function ask(config: Config, path: string): Promise<Answer> {
  const { baseUrl, token } = config.service
  try {
    const { statusCode, headers, body } = await request(baseUrl + path, {
      headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
      signal: AbortSignal.timeout(TIMEOUT),
    })
    const now = Date.now()
    const date = Date.parse(String(headers['date'] ?? ''))
    const parsed = parse(await readText(body))
    return {
      status: statusCode,
      body: isObject(parsed) ? parsed : {},
      skew: Number.isNaN(date) ? null : date - now,
      fault: null,
    }
  } catch (error) {
    const late = error instanceof Error && error.name === 'TimeoutError'
    const fault = late ? `no answer within ${TIMEOUT / 1000} s` : messageOf(error)
    return { status: 0, body: {}, skew: null, fault }
  }
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const bytes = new ByteBuffer(MAX_ANSWER)
  for await (const chunk of body) {
    if (bytes.length + chunk.length > MAX_ANSWER) break
    bytes.append(chunk)
  }
  return bytes.bytes().toString()
}

function parse(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return null
  }
}
