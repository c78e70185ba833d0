/**
 * Parts of src, folders and files, and what each may import beside itself. A file belongs to the longest name that it lies
 * under. The table in src/README.md says what the parts are.
 */
export const MAY_IMPORT: Record<string, readonly string[]> = {
  core: [],
  config: ['core'],
  service: ['core'],
  store: ['core'],
  system: ['core'],
  library: ['core'],
  client: ['core', 'service', 'system'],
  source: ['core'],
  intake: ['core'],
  deliver: ['core'],
  tools: ['core'],
  admin: ['core'],
  emulator: ['core/signature.ts'],
  // A reading of the interface of its own: it shares no mistake with the client or the emulator.
  conform: ['core/errors.ts', 'core/json.ts', 'core/ports.ts', 'core/retry-after.ts', 'core/signature.ts'],
  'sidecar.ts': ['sidecar', 'core', 'config', 'library'],
  sidecar: [
    'core',
    'config',
    'service',
    'store',
    'system',
    'library',
    'source',
    'intake',
    'deliver',
    'tools',
    'admin',
  ],
  'index.ts': ['core', 'config', 'library', 'sidecar', 'sidecar.ts'],
  cli: [
    'core',
    'config',
    'service',
    'system',
    'store',
    'library',
    'sidecar',
    'sidecar.ts',
    'index.ts',
    'emulator',
    'admin',
    'conform',
  ],
  'main.ts': ['cli', 'core'],
}

/** Parts into which time, chance and the network come through ports alone. */
export const PURE: readonly string[] = [
  'core',
  'intake',
  'deliver',
  'tools',
  'source',
  'service',
  'store',
  'client',
  'sidecar/engine.ts',
  'admin/relay/frame.ts',
  'admin/relay/hub.ts',
  'admin/relay/order.ts',
  'admin/relay/replay.ts',
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
