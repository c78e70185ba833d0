/**
 * Parts of src, folders and files, and what each may import beside itself. A file belongs to the longest name that it lies
 * under. The table in src/README.md says what the parts are.
 */
export const MAY_IMPORT: Record<string, readonly string[]> = {
  std: [],
  core: ['std'],
  system: ['core', 'std'],
  protocol: ['core', 'std'],
  client: ['core', 'std', 'system', 'protocol'],
  'sidecar/source': ['core', 'std', 'protocol'],
  'sidecar/intake': ['core', 'std', 'protocol'],
  'sidecar/deliver': ['core', 'std', 'protocol'],
  'sidecar/tools': ['core', 'std', 'protocol'],
  'sidecar/config': ['core', 'std'],
  'sidecar/store': ['core', 'std'],
  'sidecar/library': ['core', 'std'],
  'sidecar/admin': ['core', 'std'],
  sidecar: ['core', 'std', 'system', 'protocol', 'client'],
  // Readings of the interface of their own: they share no mistake with the client or with one another.
  emulator: ['std'],
  conform: ['std'],
  'index.ts': ['core', 'std', 'sidecar'],
  cli: ['core', 'std', 'system', 'protocol', 'client', 'sidecar', 'emulator', 'conform', 'index.ts'],
  'main.js': ['cli', 'core', 'std'],
}

/** Parts into which time, chance and the network come through ports alone. */
export const PURE: readonly string[] = [
  'core',
  'std',
  'protocol',
  'client',
  'sidecar/intake',
  'sidecar/deliver',
  'sidecar/tools',
  'sidecar/source',
  'sidecar/store',
  'sidecar/engine.ts',
  'sidecar/admin/relay/frame.ts',
  'sidecar/admin/relay/hub.ts',
  'sidecar/admin/relay/order.ts',
  'sidecar/admin/relay/replay.ts',
]

/** The part that a file belongs to. */
export function partOf(path: string): string | undefined {
  const parts = Object.keys(MAY_IMPORT).filter((part) => isUnder(path, part))
  return parts.toSorted((a, b) => b.length - a.length)[0]
}

/** Whether a file is this one, or lies in this folder. */
export function isUnder(path: string, name: string): boolean {
  return path === name || path.startsWith(`${name}/`)
}
