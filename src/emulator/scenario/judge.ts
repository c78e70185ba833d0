import { Ajv, type ErrorObject } from 'ajv'
import { nearest } from '../nearest.ts'
import { readVerb } from './line.ts'
import { scenarioSchema, type Scenario } from './schema.ts'

/** A fault of a scenario, with its position. */
export interface Fault {
  path: readonly (string | number)[]
  /** True: the last part of the path is a key, and the key is wrong. */
  atKey: boolean
  message: string
}

const ajv = new Ajv({ allErrors: true, verbose: true, discriminator: true, strict: false })
ajv.addFormat('regex', isPattern)
ajv.addFormat('line', (line) => readVerb(line) !== undefined)
const validate = ajv.compile<Scenario>(scenarioSchema)

/** Every fault of `content`; none when it is a valid scenario. */
export function judge(content: unknown): Fault[] {
  if (validate(content)) return faultsOfPeople(content)
  const errors = validate.errors ?? []
  return errors.filter((error) => says(error, errors)).map(faultOf)
}

/** An alternative with another type than the value. */
const OTHER_FORM = /\/anyOf\/\d+\/type$/

/**
 * If a value matches none of several alternatives, only the faults of the alternative with its type
 * are reported.
 */
function says(error: ErrorObject, all: readonly ErrorObject[]): boolean {
  if (error.keyword !== 'anyOf') return !OTHER_FORM.test(error.schemaPath)
  return !all.some(
    (other) =>
      other.keyword !== 'anyOf' &&
      !OTHER_FORM.test(other.schemaPath) &&
      `${other.instancePath}/`.startsWith(`${error.instancePath}/`),
  )
}

function faultOf(error: ErrorObject): Fault {
  const path = pathOf(error.instancePath)
  if (error.keyword === 'additionalProperties') {
    const key = String(error.params['additionalProperty'])
    return { path: [...path, key], atKey: true, message: unknownKey(key, error) }
  }
  return { path, atKey: false, message: messageOf(error) }
}

function messageOf({ keyword, params, message, parentSchema, data }: ErrorObject): string {
  switch (keyword) {
    case 'required':
      return `needs ${JSON.stringify(params['missingProperty'])}`
    case 'enum':
      return `must be one of ${JSON.stringify(params['allowedValues'])}`
    case 'pattern':
      return `must be ${String(parentSchema?.['description'] ?? parentSchema?.['pattern'])}`
    case 'maxProperties':
      return `is one step with several keys (${Object.keys(Object(data)).join(', ')}); make each a step`
    case 'minProperties':
      return 'says nothing'
    case 'anyOf':
      return `must be ${formsOf(parentSchema)}`
    case 'format':
      if (params['format'] === 'regex') return `${JSON.stringify(data)} is not a regular expression`
      return `${JSON.stringify(data)} is not a step; write ${JSON.stringify(`say ${String(data)}`)} to say it`
    default:
      return message ?? 'is not valid'
  }
}

function formsOf(schema: object | undefined): string {
  const forms: unknown = schema === undefined ? undefined : Reflect.get(schema, 'anyOf')
  const types = Array.isArray(forms) ? forms.map((form: object) => String(Reflect.get(form, 'type'))) : []
  return types.map((type) => (type === 'object' ? 'an object' : `a ${type}`)).join(' or ')
}

function unknownKey(key: string, { parentSchema }: ErrorObject): string {
  const known = Object.keys(Object(parentSchema?.['properties']))
  const close = nearest(key, known)
  const hint = close === undefined ? '' : `, did you mean ${JSON.stringify(close)}?`
  return `unknown key${hint} (known here: ${known.join(', ')})`
}

/** A rule beyond the schema: a person's verdict must match the kind of the action. */
function faultsOfPeople(scenario: Scenario): Fault[] {
  return (scenario.sessions ?? []).flatMap(({ resolve = [] }, session) =>
    resolve.flatMap((entry, index) => {
      const [needed, other] = entry.type === 'approval' ? ['approved', 'answer'] : ['answer', 'approved']
      const path = ['sessions', session, 'resolve', index]
      const faults: Fault[] = []
      if (!Object.hasOwn(entry, needed ?? '')) {
        faults.push({ path, atKey: false, message: `a person resolves this ${entry.type} with ${needed}` })
      }
      if (Object.hasOwn(entry, other ?? '')) {
        faults.push({ path: [...path, other ?? ''], atKey: true, message: `goes with no ${entry.type}` })
      }
      return faults
    }),
  )
}

function pathOf(pointer: string): (string | number)[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step))
}

function isPattern(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u').source !== ''
  } catch {
    return false
  }
}
