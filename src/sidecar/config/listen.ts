/** The address of a listener. With port 0 the system chooses a free one. */
export interface ListenAddress {
  host: string
  port: number
}

/** `HOST:PORT`; an IPv6 host in brackets. null for any other text. */
export function parseListen(text: string): ListenAddress | null {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})$/.exec(text)
  if (match === null) return null
  const port = Number(match[3])
  const host = match[1] ?? match[2]
  return port > 65_535 || host === undefined ? null : { host, port }
}

/** `[::1]:8481`: the text that `parseListen` reads, and the host of a URL. */
export function listenText({ host, port }: ListenAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** The URL by which a program on this machine reaches a listener. */
export function urlOf({ host, port }: ListenAddress): string {
  const reachable = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${listenText({ host: reachable, port })}`
}

export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase()
  return (
    bare === 'localhost' ||
    bare === '::1' ||
    /^127(\.[0-9]{1,3}){3}$/.test(bare) ||
    bare.endsWith('.localhost')
  )
}
