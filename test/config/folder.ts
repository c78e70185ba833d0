import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach } from 'vitest'

const made: string[] = []

afterEach(async () => {
  await Promise.all(made.splice(0).map((folder) => rm(folder, { recursive: true, force: true })))
})

/** A folder of this test's own with these files in it; gone after the test. */
export async function folderWith(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'sidecar-config-'))
  made.push(folder)
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(folder, name), text)
  return folder
}
