// node verify.mjs SECRET ID TIMESTAMP SIGNATURES NOW < body
import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'

export function isGenuine(secret, id, timestamp, signatures, body, now) {
  if (!(Math.abs(now - Number(timestamp)) <= 300)) return false
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature.replace('v1,', ''), 'base64')
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

const [secret, id, timestamp, signatures, now] = process.argv.slice(2)
const genuine = isGenuine(secret, id, timestamp, signatures, readFileSync(0), Number(now))
console.log(genuine ? 'genuine' : 'forged')
