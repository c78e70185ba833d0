/** All ports of a host share cookies: the name separates two sidecars on one machine. */
function nameFor(port: number): string {
  return `session_sidecar_${port}`
}

/** The login's id that a browser sent to `port`; null when there is none. */
export function readCookie(header: string | undefined, port: number): string | null {
  const name = nameFor(port)
  for (const pair of (header ?? '').split(';')) {
    const [key, value] = pair.trim().split('=', 2)
    if (key === name && value !== undefined && /^[\w-]{43}$/.test(value)) return value
  }
  return null
}

/** `id` empty: deletes the cookie. `maxAge` in seconds. `secure`: the browser uses https. */
export function writeCookie(id: string, port: number, maxAge: number, secure: boolean): string {
  const flags = `Path=/; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`
  return `${nameFor(port)}=${id}; Max-Age=${maxAge}; ${flags}`
}
