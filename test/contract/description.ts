import type { Fields } from '../emulator/support.ts'

interface Described {
  method: string
  /** An OpenAPI path template. */
  path: string
  operation: Fields
}

/** Every operation of a description. */
export function operationsOf(document: Fields): Described[] {
  return Object.entries(document['paths'] as Record<string, Record<string, Fields>>).flatMap(
    ([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        operation,
      })),
  )
}

/** The path with every id filled in; `x` names nothing. */
export function withIds(path: string, id = 'x'): string {
  return path.replaceAll(/\{\w+\}/g, id)
}

/** The scope that an operation names, if it needs one. */
export function scopeOf(operation: Fields): string | undefined {
  const [scope] = (operation['security'] as { accessToken?: string[] }[]).flatMap(
    ({ accessToken = [] }) => accessToken,
  )
  return scope
}
