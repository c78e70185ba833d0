import { InvalidArgumentError } from 'commander'
import { parseListen, type ListenAddress } from '../sidecar/config/listen.ts'
import { formatDuration, parseDuration } from '../std/duration.ts'
import { isObject, type JsonObject } from '../std/json.ts'

/**
 * Checks of the values of options. Each throws an error that commander reports with the option's
 * name.
 */

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = /^[0-9]{1,9}$/.test(text) ? Number(text) : NaN
    if (number >= least && number <= most) return number
    throw new InvalidArgumentError(`A whole number from ${least} to ${most} is expected.`)
  }
}

export function listenAddress(text: string): ListenAddress {
  const address = parseListen(text)
  if (address === null) throw new InvalidArgumentError('HOST:PORT is expected, such as 127.0.0.1:4010.')
  return address
}

/** A point in time as ISO 8601 in UTC, from an ISO date or time, or from a duration ago (`2h`). */
export function pointInTime(text: string): string {
  const ago = parseDuration(text)
  const at = ago === null ? parseIso(text) : Date.now() - ago
  if (at !== null && at >= 0) return new Date(at).toISOString()
  throw new InvalidArgumentError(
    'A time such as 2026-11-21T05:00:00Z, or a duration ago such as 2h, is expected.',
  )
}

/** Where a replay begins: a seq, or a point in time. */
export function seqOrTime(text: string): string {
  return /^[0-9]{1,40}$/.test(text) ? text : pointInTime(text)
}

/** `[::1]:3000/a`, `localhost`, `app.example.com/hook`, `app:3000?x=1`: a port, or a name that can only be a host. */
const HOST = /^(?:(?:\[[\da-f:.]+\]|[^/:?#@\s]+):\d{1,5}|localhost|[^/:?#@\s]+\.[^/:?#@\s]+)(?:[/?#]|$)/i

/**
 * The address of an app: `http://localhost:3000/events`, `localhost:3000` or `3000`. A word such as `abc` is more likely
 * a mistake than the name of a machine.
 */
export function appAddress(text: string): string {
  const full = /^\d{1,5}$/.test(text) ? `localhost:${text}` : text
  const url = /^https?:\/\//i.test(full)
    ? URL.parse(full)
    : HOST.test(full)
      ? URL.parse(`http://${full}`)
      : null
  if (url !== null) return url.href
  throw new InvalidArgumentError(
    'The address of your app is expected, such as http://localhost:3000/agent-events or localhost:3000.',
  )
}

/** Adds one `NAME=URL` to those before it. */
export function toolAddress(text: string, before: unknown): JsonObject {
  const [, name = '', url = ''] = /^([A-Za-z0-9_-]{1,64})=(.+)$/.exec(text) ?? []
  if (name === '')
    throw new InvalidArgumentError('NAME=URL is expected, such as lookup_order=http://localhost:3000/orders.')
  return { ...(isObject(before) ? before : {}), [name]: appAddress(url) }
}

function parseIso(text: string): number | null {
  const time = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : NaN
  return Number.isNaN(time) ? null : time
}

/** A duration such as `90s`, in milliseconds. */
export function duration(least: number, most: number): (text: string) => number {
  return (text) => {
    const ms = parseDuration(text)
    if (ms !== null && ms >= least && ms <= most) return ms
    throw new InvalidArgumentError(
      `A duration such as 90s or 5m, from ${formatDuration(least)} to ${formatDuration(most)}, is expected.`,
    )
  }
}
