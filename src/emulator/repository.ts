import { invalid } from './refusal.ts'
import { touch, type Repo, type Session } from './session.ts'
import type { World } from './world.ts'

/**
 * The repository of a new session; its clone is pending until the workspace is built.
 * @throws {Refusal} 400 when the organization has no repository-host connection: the scenario lists
 *   no repositories.
 */
export function repoFor(world: World, body: unknown): Repo {
  if (world.scenario.deployment?.repositories === undefined) {
    throw invalid(
      'environment.repo needs a repository-host connection, which this organization does not have',
    )
  }
  return { fullName: world.details.repo.read(body), branch: null, cloneError: null }
}

/**
 * Clones into a new workspace. The branch is the repository's own choice; a failure is in
 * `clone_error`.
 */
export function clone(world: World, session: Session): void {
  const { repo, workspace } = session
  if (repo === null) return
  const found = world.scenario.deployment?.repositories?.find(({ full_name }) => full_name === repo.fullName)
  const failure =
    found === undefined ? `repository ${JSON.stringify(repo.fullName)} was not found` : found.clone_error
  repo.cloneError = failure ?? null
  repo.branch = failure === undefined ? (found?.branch ?? 'main') : null
  touch(session, world.clock.now())
  if (failure !== undefined) return
  for (const [path, text] of Object.entries(found?.files ?? {})) {
    const bytes = Buffer.from(text)
    workspace.files.set(path, { size: bytes.length, bytes })
  }
}
