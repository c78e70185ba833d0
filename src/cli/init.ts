import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { checks } from '../sidecar/config/checks.ts'
import { codeOf, messageOf, OperatorError } from '../std/errors.ts'
import { createFolder } from '../std/folder.ts'
import type { Context } from './context.ts'
import type { Dialogue } from './dialogue.ts'
import { configText, toolUrl, type Answers } from './init/template.ts'
import { jsonLine } from './terminal.ts'
import { asTyped } from './working-folder.ts'

interface InitOptions {
  baseUrl?: string
  tokenFile?: string
  handlerUrl?: string
  tool?: string
  json?: boolean
}

const DEFAULT_FILE = 'sidecar.yaml'
const SECRET_FILE = 'callback-secret.txt'

/** Writes a commented configuration and a secret for callbacks, from flags or, on a terminal, a few questions. */
export async function init(
  { terminal, env }: Context,
  options: InitOptions,
  [file = DEFAULT_FILE]: string[],
): Promise<number> {
  if (existsSync(file)) throw taken(file)
  const folder = path.dirname(file)
  const secretFile = path.join(folder, SECRET_FILE)
  const kept = existsSync(secretFile)
  if (kept) await proveSecret(secretFile)
  const dialogue = (await terminal.dialogue?.()) ?? null
  const answers = await answersOf(options, dialogue).finally(() => dialogue?.close())
  const text = configText(
    { ...answers, tokenFile: answers.tokenFile === null ? null : fromFolder(folder, answers.tokenFile) },
    SECRET_FILE,
  )
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  await prove(answers, secret)
  createFolder(folder)
  await writeNew(file, asTyped(text, env), 0o644)
  if (!kept) await writeNew(secretFile, `${secret}\n`, 0o600)
  if (options.json === true) {
    terminal.out(jsonLine({ config: file, secret_file: secretFile, secret_kept: kept }))
    return 0
  }
  terminal.out(
    `wrote ${file}\n${kept ? 'kept' : 'wrote'} ${secretFile}: your app checks the signature of callbacks with it\n\n` +
      `Next:\n${answers.tokenFile === null ? '  export SERVICE_TOKEN=svc_pat_…\n' : ''}` +
      asTyped(`  session-sidecar check -c ${file}\n  session-sidecar run -c ${file}\n`, env),
  )
  return 0
}

async function answersOf(options: InitOptions, dialogue: Dialogue | null): Promise<Answers> {
  /** Asks again until the address can be used. `format`: the check of a text that is not empty. */
  const question = async (
    given: string | undefined,
    text: string,
    {
      fallback = '',
      format,
      required = false,
    }: { fallback?: string; format?: string; required?: boolean } = {},
  ): Promise<string> => {
    if (given !== undefined) return given
    if (dialogue === null) return fallback
    let hint = ''
    for (;;) {
      const said = (await dialogue.ask(`${hint}${text}${fallback === '' ? '' : ` [${fallback}]`}: `)).trim()
      const fault = said === '' || format === undefined ? null : (checks[format]?.(said) ?? null)
      if (said === '' && required) hint = '  it is needed\n'
      else if (fault === null) return said === '' ? fallback : said
      else hint = `  ${said} ${fault}\n`
    }
  }
  const baseUrl = await question(options.baseUrl, 'Address of the Agent Session Service, without /v1', {
    format: 'base-url',
    required: true,
  })
  if (baseUrl === '') {
    throw new OperatorError(
      'the address of the service is missing',
      2,
      'add --base-url https://agents.example.com, or run this command on a terminal',
    )
  }
  const tokenFile = await question(
    options.tokenFile,
    'File with the token (empty: the variable SERVICE_TOKEN)',
  )
  const handlerUrl = await question(options.handlerUrl, 'Address where your app receives callbacks', {
    fallback: 'http://127.0.0.1:3000/agent-events',
    format: 'http-url',
  })
  const tool = await question(options.tool, 'Name of a function tool that your app answers (empty: none)')
  return {
    baseUrl,
    handlerUrl,
    tokenFile: tokenFile === '' ? null : tokenFile,
    tool: tool === '' ? null : tool,
  }
}

/** A path in a configuration is resolved against the folder of the configuration. */
function fromFolder(folder: string, file: string): string {
  return path.isAbsolute(file) ? file : path.relative(folder, file)
}

/**
 * @throws {OperatorError} when the file holds no valid secret: the configuration would not load.
 */
async function proveSecret(file: string): Promise<void> {
  const { readParts } = await import('../sidecar/config/secrets.ts')
  try {
    await readParts([{ kind: 'file', file, format: 'callback-secret', lines: true }])
  } catch (error) {
    throw new OperatorError(
      messageOf(error),
      2,
      'move that file, or write the configuration into another folder',
    )
  }
}

/**
 * The written configuration must load. @throws {ConfigError} with each answer that cannot be used.
 */
async function prove({ baseUrl, handlerUrl, tool }: Answers, secret: string): Promise<void> {
  const { resolveConfig } = await import('../sidecar/config/load.ts')
  const handlers = [{ name: 'app', url: handlerUrl, secret }]
  const config = { service: { base_url: baseUrl, token: 'svc_pat_later' }, handlers }
  const loadable = { env: {}, now: Date.now() }
  await resolveConfig(config, loadable)
  if (tool !== null) {
    const tools = [
      { name: tool, url: toolUrl(handlerUrl, tool), description: 'x', parameters: { type: 'object' } },
    ]
    await resolveConfig({ ...config, tools }, loadable)
  }
}

/**
 * @throws {OperatorError} when the file exists: it is never overwritten.
 */
async function writeNew(file: string, text: string, mode: number): Promise<void> {
  try {
    await writeFile(file, text, { flag: 'wx', mode })
  } catch (error) {
    throw codeOf(error) === 'EEXIST' ? taken(file) : error
  }
}

function taken(file: string): OperatorError {
  return new OperatorError(`${file} exists already and was not changed`, 2, 'name another file')
}
