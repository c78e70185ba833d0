import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parse, stringify } from 'yaml'
import { ConfigError } from '../../src/sidecar/config/fault.ts'
import { loadConfig } from '../../src/sidecar/config/load.ts'
import { printConfig } from '../../src/sidecar/config/print.ts'
import type { Random } from '../../src/std/ports.ts'
import { inFolder } from './folder.ts'
import { mutateText, mutateValue, pick } from './mutate.ts'
import { Tally } from './tally.ts'

/** Parsed, since its comments cost more than the rest. */
const EXAMPLE: unknown = parse(
  readFileSync(resolve(import.meta.dirname, '../../config/sidecar.yaml'), 'utf8'),
)
const DENSE = `service: { base_url: "https://service.example", token: "svc_pat_x" }
store: { url: "sqlite:sidecar.db", retention: 7d }
stream: { enabled: true, start_from: now }
handlers:
  - &one { name: app, url: "http://127.0.0.1:9/", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, events: ["turn.*"], timeout: 15s }
  - { <<: *one, name: other, batch: { max: 10, wait: 1s }, retry: { attempts: 3, base: 1s, max: 1h } }
tools:
  - { name: lookup, url: "http://127.0.0.1:9/t", parameters: { type: object, properties: { a: { type: string } } }, after_crash: fail }
admin: { listen: "127.0.0.1:8481", token: "\${TOKEN:-none}" }
`

const ENVIRONMENT = { TOKEN: 'a: b', SERVICE_TOKEN: 'svc_pat_x' }

/** Read at the same time: the disk takes longer than the reading. */
const TOGETHER = 32

/** Configuration files of every shape: each is taken, or refused with the file, the line and a sentence for every fault. */
export function attackConfiguration(count: number, random: Random): Promise<Tally> {
  const dense: unknown = parse(DENSE, { merge: true })
  const make = (): string =>
    random.next() < 0.5
      ? mutateText(DENSE, random)
      : stringify(mutateValue(pick(random, [dense, dense, EXAMPLE]), random, 0.3))
  return inFolder(async (folder) => {
    const tally = new Tally()
    for (let done = 0; done < count; done += TOGETHER) {
      const texts = Array.from({ length: Math.min(TOGETHER, count - done) }, make)
      const outcomes = await Promise.all(
        texts.map((text, index) => load(join(folder, `${index}.yaml`), text)),
      )
      for (const outcome of outcomes) tally.note(outcome)
    }
    return tally
  })
}

async function load(file: string, text: string): Promise<'taken' | 'refused'> {
  await writeFile(file, text)
  try {
    printConfig(await loadConfig(file, ENVIRONMENT))
    return 'taken'
  } catch (error) {
    if (!(error instanceof ConfigError)) throw new Error(`by\n${text}`, { cause: error })
    const wordless = error.faults.find(
      ({ file, line, message }) =>
        file === null || line === null || message === '' || /\n *at /.test(message),
    )
    if (wordless !== undefined) throw new Error(`${JSON.stringify(wordless)} of\n${text}`, { cause: error })
    return 'refused'
  }
}
