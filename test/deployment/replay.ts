import { execFile } from 'node:child_process'
import { cp, lstat, mkdir, readdir } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { ROOT, stages, type Instruction } from './documents.ts'

const exec = promisify(execFile)
/** Milliseconds for one RUN: an install or a build. */
const STEP = 300_000

/** Does what the Dockerfile says, each stage in a folder of its own below `folder`. @returns the last stage's root. */
export async function replay(folder: string): Promise<string> {
  let root = ''
  for (const [index, stage] of stages().entries()) {
    root = path.join(folder, stage.name ?? String(index))
    let workdir = '/'
    await mkdir(root, { recursive: true })
    for (const instruction of stage.instructions) {
      if (instruction.name === 'WORKDIR') {
        workdir = instruction.text
        await mkdir(path.join(root, workdir), { recursive: true })
      }
      if (instruction.name === 'COPY') await copy(instruction, folder, path.join(root, workdir))
      if (instruction.name === 'RUN')
        await exec('bash', ['-ec', instruction.text], {
          cwd: path.join(root, workdir),
          env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
          timeout: STEP,
          maxBuffer: 16 * 1024 * 1024,
        })
    }
  }
  return root
}

async function copy({ text }: Instruction, folder: string, workdir: string): Promise<void> {
  const [, from, rest = ''] = /^(?:--from=(\S+) )?(.*)$/.exec(text) ?? []
  const words = rest.split(' ')
  const target = words.pop() ?? ''
  for (const source of words) {
    const origin = from === undefined ? path.join(ROOT, source) : path.join(folder, from, source)
    const folderLike = target.endsWith('/') || words.length > 1
    const destination = path.join(workdir, target, folderLike ? path.basename(source) : '')
    await cp(origin, destination, { recursive: true, verbatimSymlinks: true })
  }
}

/** Bytes of the files below a folder. */
export async function measure(folder: string): Promise<{ bytes: number }> {
  let bytes = 0
  for (const name of await readdir(folder, { recursive: true })) {
    const found = await lstat(path.join(folder, name))
    if (found.isFile()) bytes += found.size
  }
  return { bytes }
}
