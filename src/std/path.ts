/** `/v1/sessions/{session_id}/turns` with the kind of each parameter, in order; null for an unknown one. */
export interface PathTemplate<Kind extends string = string> {
  path: string
  parameters: readonly (Kind | null)[]
}

/** The path with its ids, each percent-encoded. A parameter without an id gets `otherwise`. */
export function fillPath<Kind extends string>(
  { path, parameters }: PathTemplate<Kind>,
  ids: Readonly<Partial<Record<Kind, string>>>,
  otherwise = '',
): string {
  let at = 0
  return path.replace(/\{[^}]*\}/g, () => {
    const kind = parameters[at++] ?? null
    return encodeId((kind === null ? undefined : ids[kind]) ?? otherwise)
  })
}

/**
 * An id is opaque, so it may be `..`, which a URL removes even when encoded. Encoded twice it is an
 * id that does not exist.
 */
export function encodeId(id: string): string {
  return /^\.+$/.test(id) ? id.replaceAll('.', '%252E') : encodeURIComponent(id.toWellFormed())
}
