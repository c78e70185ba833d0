import type { Config } from './config/config.ts'
import type { SecretChange } from './config/watch.ts'
import type { Specs } from './specs.ts'

/** After a secret was rotated, the next callback or call is signed with the new one. */
export function replaceSecrets(
  specs: Specs,
  change: Extract<SecretChange, { of: 'handler' | 'tool' }>,
): void {
  const list = change.of === 'handler' ? specs.handlers : specs.tools
  const target = list.find(({ name }) => name === change.name)?.target
  if (target?.kind === 'http') target.secrets.current = change.secrets
}

/** Every secret of the configuration, to be withheld from the log. */
export function secretsOf(config: Config): string[] {
  const targets = [...config.handlers, ...config.tools].flatMap(({ target }) =>
    target.kind === 'http' ? target.secrets : [],
  )
  return [
    config.service.token,
    ...(config.admin.token === null ? [] : [config.admin.token]),
    ...config.webhooks.secrets,
    ...(config.store.url.kind === 'postgres' ? [config.store.url.password ?? []].flat() : []),
    ...targets,
  ]
}
