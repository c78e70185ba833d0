import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Deployment } from 'kubernetes-models/apps/v1/Deployment'
import { StatefulSet } from 'kubernetes-models/apps/v1/StatefulSet'
import { Ingress } from 'kubernetes-models/networking.k8s.io/v1/Ingress'
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget'
import { PersistentVolumeClaim } from 'kubernetes-models/v1/PersistentVolumeClaim'
import { Secret } from 'kubernetes-models/v1/Secret'
import { Service } from 'kubernetes-models/v1/Service'
import { isObject, stringOf } from '../../src/std/json.ts'
import { ROOT } from './documents.ts'

/** Kubernetes' own OpenAPI schemas, by kind; with the module that has its type. */
const KINDS = {
  Deployment: [Deployment, 'apps/v1'],
  StatefulSet: [StatefulSet, 'apps/v1'],
  ConfigMap: [ConfigMap, 'v1'],
  PersistentVolumeClaim: [PersistentVolumeClaim, 'v1'],
  Secret: [Secret, 'v1'],
  Service: [Service, 'v1'],
  PodDisruptionBudget: [PodDisruptionBudget, 'policy/v1'],
  Ingress: [Ingress, 'networking.k8s.io/v1'],
} as const

function kindOf(manifest: unknown): keyof typeof KINDS {
  const kind = isObject(manifest) ? (stringOf(manifest['kind']) ?? '') : ''
  if (!(kind in KINDS)) throw new Error(`a manifest is of no known kind: "${kind}"`)
  return kind as keyof typeof KINDS
}

/** @throws {Error} naming the first value that the schema of its kind does not allow. */
export function validateManifest(manifest: unknown): void {
  const [Kind, group] = KINDS[kindOf(manifest)]
  if (!isObject(manifest) || manifest['apiVersion'] !== group) throw new Error(`apiVersion is not ${group}`)
  new Kind(manifest).validate()
}

/**
 * The schemas allow unknown keys, which a cluster would drop in silence. The types made from them do not.
 * @returns what the compiler says of manifests written out as literals; empty when every key is known.
 */
export function unknownKeys(manifests: readonly unknown[]): string {
  // Below the packages, where their types are found, and where neither the compiler nor the linter looks by itself.
  const cache = path.join(ROOT, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(path.join(cache, 'manifests-'))
  try {
    const lines = manifests.map((manifest, n) => {
      const kind = kindOf(manifest)
      return `import type { I${kind} as T${n} } from 'kubernetes-models/${KINDS[kind][1]}/${kind}'
export const m${n}: T${n} = ${JSON.stringify(manifest)}`
    })
    const file = path.join(folder, 'manifests.ts')
    writeFileSync(file, lines.join('\n'))
    const args = ['--noEmit', '--skipLibCheck', '--module', 'nodenext', '--ignoreConfig', file]
    execFileSync(path.join(ROOT, 'node_modules/.bin/tsc'), args, { encoding: 'utf8', stdio: 'pipe' })
    return ''
  } catch (error) {
    return error instanceof Error && 'stdout' in error ? String(error.stdout) : String(error)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
