import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { Problem } from './problem.ts'

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

export function isLoopback(address: string): boolean {
  const version = isIP(address)
  if (version === 0) return false
  return LOOPBACK.check(address, version === 4 ? 'ipv4' : 'ipv6')
}

export interface Door {
  /** The admin token as it is now; null when none is configured. */
  token: string | null
  /** Whether the listener accepts connections from this machine only. */
  loopback: boolean
  /** Compares a given token with the admin token. @throws {Problem} 429 when too many wrong ones come. */
  isRight: (token: string, given: string) => boolean
}

/**
 * The kinds of access. `everybody`: always. `page`: the console's files, open to all if the API
 * exists. `login`: a browser that gave the token before. `token`: a request with the token.
 */
export type Access = 'everybody' | 'page' | 'login' | 'token'

/**
 * Allows a request or throws. If a token is configured, every request must carry it. Without one,
 * only programs on this machine are allowed, and of browser pages only the console.
 */
export function admit(
  headers: IncomingHttpHeaders,
  access: Access,
  { token, loopback, isRight }: Door,
): void {
  if (token === null && loopback) {
    if (access !== 'everybody') refuseProxies(headers)
    return refuseBrowsers(headers)
  }
  if (access === 'everybody') return
  if (token === null) {
    throw new Problem(
      'not_found',
      'without admin.token, this path exists only if admin.listen is on loopback',
    )
  }
  if (access === 'page') return
  if (access === 'login') return refuseForeign(headers)
  const given = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
  if (given === undefined || !isRight(token, given)) {
    throw new Problem('unauthorized', 'the admin token is required as "Authorization: Bearer …"', {
      headers: { 'www-authenticate': 'Bearer realm="session-sidecar"' },
    })
  }
}

/**
 * Any web page can make a browser send requests to loopback: with its own name that resolves to loopback (DNS
 * rebinding, detected by Host), or across origins (detected by Origin or Sec-Fetch-Site).
 */
function refuseBrowsers(headers: IncomingHttpHeaders): void {
  const host = headers.host ?? ''
  if (!isLocalName(host)) {
    throw new Problem(
      'forbidden',
      'without a token (admin.token) only requests to localhost or a loopback address are accepted',
    )
  }
  refuseForeign(headers)
}

/**
 * Headers that proxies, load balancers and content delivery networks add to a request: the client's
 * address, the original request, their own name or trace.
 */
const PROXY_HEADER = new RegExp(
  `^(${[
    'via|forwarded|x-forwarded(-.*)?|x-original-.*|x-envoy-.*|x-real-ip|x-client-ip|x-cluster-client-ip|x-remote-(ip|addr)',
    'client-ip|true-client-ip|(wl-)?proxy-client-ip|x-proxyuser-ip|x-host|x-scheme|x-azure-.*|x-arr-.*|x-appengine-.*',
    'x-amzn-trace-id|x-amz-cf-id|x-cloud-trace-context|cloudfront-.*|cf-.*|cdn-loop|fly-.*|fastly-.*|x-varnish|x-nf-.*|x-vercel-.*',
  ].join('|')})$`,
)

/**
 * A proxy on this machine may forward requests of other machines to us with our own address as Host. Only its headers
 * show that.
 */
function refuseProxies(headers: IncomingHttpHeaders): void {
  const sign = Object.keys(headers).find((name) => PROXY_HEADER.test(name))
  if (sign === undefined) return
  throw new Problem(
    'forbidden',
    `without a token (admin.token) requests through a proxy are refused (the request has ${sign})`,
  )
}

function refuseForeign(headers: IncomingHttpHeaders): void {
  const { host = '', origin } = headers
  const site = headers['sec-fetch-site']
  const foreign = origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`
  if (foreign || site === 'cross-site' || site === 'same-site') {
    throw new Problem('forbidden', 'requests from pages of another origin are refused')
  }
}

/** The path of a login (POST) and of its state (GET). */
export const LOGIN = '/console/login'

/** Whether `path` belongs to the console: files without a secret, and the routes of a login. */
export function isConsolePath(path: string): boolean {
  return path === '/' || path.startsWith('/console/')
}

/** A header that a form or link of another page cannot send. */
const CONSOLE_HEADER = 'x-sidecar-console'

/** @throws {Problem} when another page may have made the browser send the request. */
export function refuseForms(headers: IncomingHttpHeaders): void {
  if (headers[CONSOLE_HEADER] === undefined) {
    throw new Problem(
      'forbidden',
      `a request with the console's cookie must have the header ${CONSOLE_HEADER}`,
    )
  }
}

/** `host` with or without a port. */
function isLocalName(host: string): boolean {
  const name = /^(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(host)?.[1]
  if (name === undefined) return false
  return name.toLowerCase() === 'localhost' || isLoopback(name.replace(/^\[(.*)\]$/, '$1'))
}
