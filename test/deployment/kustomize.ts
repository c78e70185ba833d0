import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { documentsOf, ROOT } from './documents.ts'

/** `kubectl` has kustomize built in, and renders without a cluster. Debian's 1.20 has one that knows no components. */
export const hasKustomize = kustomize(path.join(ROOT, 'config/kubernetes/component')).status === 0
if (!hasKustomize) {
  process.stderr.write(
    'the manifests are NOT rendered: there is no kubectl here that knows components (1.21)\n',
  )
}

/** What `kubectl apply -k` would send. @throws {Error} with what kustomize says. */
export function render(folder: string): unknown[] {
  const { status, stdout, stderr } = kustomize(folder)
  if (status !== 0) throw new Error(stderr)
  return documentsOf<unknown>(stdout)
}

function kustomize(folder: string): { status: number | null; stdout: string; stderr: string } {
  return spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' })
}
