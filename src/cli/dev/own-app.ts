import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import path from 'node:path'
import type { ConfigInput } from '../../sidecar/config/schema.ts'
import { ANY_FUNCTION } from '../../core/tool.ts'
import { codeOf, messageOf, OperatorError } from '../../std/errors.ts'
import { createFolder, PRIVATE } from '../../std/folder.ts'
import { isCallbackSecret } from '../../sidecar/config/checks.ts'
import type { Context } from '../context.ts'

export interface ForwardOptions {
  forwardTo: string
  /** Addresses of single tools, by name. */
  tool?: Readonly<Record<string, string>>
  events?: string[]
  secretFile?: string
  /** false: function calls are left to other programs. */
  tools?: boolean
}

/** The user's own app, to which callbacks and function calls are forwarded. */
export interface OwnApp {
  url: string
  /** By name; `*` is every other function, with `{name}` in its address. */
  tools: Readonly<Record<string, string>>
  events: string[]
  secret: string
  secretFile: string
}

export async function ownApp(options: ForwardOptions, env: Context['env']): Promise<OwnApp> {
  const { forwardTo, tool = {}, events = ['*'] } = options
  const secretFile = options.secretFile ?? usersSecretFile(env)
  const any = { [ANY_FUNCTION]: `${new URL('/tools/', forwardTo).href}{name}` }
  const tools = options.tools === false ? {} : { ...tool, ...any }
  return { url: forwardTo, tools, events, secret: await keepSecret(secretFile), secretFile }
}

/** Enough attempts for the time in which the user corrects the app. */
const PATIENT = { attempts: 1000, max: '15s' }

export function configOf({ url, tools, events, secret }: OwnApp): Pick<ConfigInput, 'handlers' | 'tools'> {
  return {
    handlers: [{ name: 'app', url, secret, events, retry: PATIENT }],
    tools: Object.entries(tools).map(([name, at]) => ({ name, url: at, secret, retry: PATIENT })),
  }
}

/** In the user's folder for settings, so that the app needs no new secret for each run. */
function usersSecretFile(env: Context['env']): string {
  const given = env['XDG_CONFIG_HOME'] ?? ''
  const base = path.isAbsolute(given) ? given : path.join(homedir(), '.config')
  return path.join(base, 'agent-session-sidecar', 'callback-secret.txt')
}

/**
 * Reads the secret, and makes it first if the file is missing.
 * @throws {OperatorError} when the file cannot be used.
 */
async function keepSecret(file: string): Promise<string> {
  try {
    createFolder(path.dirname(file), PRIVATE)
    await writeFile(file, `whsec_${randomBytes(32).toString('base64')}\n`, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if (codeOf(error) !== 'EEXIST' && codeOf(error) !== 'EROFS') throw unusable(file, error)
  }
  try {
    const secret = (await readFile(file, 'utf8')).trim()
    if (!isCallbackSecret(secret))
      throw new Error('a Standard Webhooks secret is "whsec_" followed by base64')
    return secret
  } catch (error) {
    throw unusable(file, error)
  }
}

function unusable(file: string, error: unknown): OperatorError {
  return new OperatorError(
    `the secret for callbacks cannot be kept in ${file}: ${messageOf(error)}`,
    2,
    'name another file: --secret-file FILE',
  )
}
