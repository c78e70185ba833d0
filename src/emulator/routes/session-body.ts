import { Type, type TSchema } from 'typebox'
import { permissionRulesSchema, type PermissionRule } from '../policy.ts'
import type { OpenDetails } from '../profile/details.ts'
import type { Limits } from '../limits.ts'
import { toolsSchema } from '../tool.ts'

const closed = { additionalProperties: false }
const optional = Type.Optional

/** The fields of `agent` that PATCH may change; the model only if the profile allows it. */
export interface PatchedAgent {
  instructions?: string
  approval_mode?: string
  permission_rules?: PermissionRule[]
  model?: string
  model_credential_id?: string
}

/**
 * Request bodies of sessions, with the profile's names for fields that the interface does not
 * specify.
 */
export function sessionBodies(details: OpenDetails, limits: Limits) {
  const { automatic, asking } = details.approvalModes
  const settings = {
    instructions: optional(Type.String({ maxLength: 32_000 })),
    approval_mode: optional(Type.Enum([automatic, asking, 'read_only'])),
    permission_rules: optional(permissionRulesSchema),
  }
  const model = { model: optional(Type.String()), model_credential_id: optional(Type.String()) }
  const metadata = optional(Type.Record(Type.String(), Type.String({ maxLength: limits.metadataCharacters })))
  const title = optional(Type.String())
  return {
    create: Type.Object(
      {
        agent: optional(
          Type.Object(
            { id: optional(Type.String()), ...model, ...settings, tools: optional(toolsSchema) },
            closed,
          ),
        ),
        title,
        metadata,
        environment: optional(
          Type.Object(
            {
              repo: optional(details.repo.body),
              files: optional(Type.Array(fileSchema(details))),
              profiles: optional(Type.Array(Type.String())),
            },
            closed,
          ),
        ),
        input: optional(details.message.opening),
        text: optional(textSchema(details)),
      },
      closed,
    ),
    patch: Type.Object(
      {
        title,
        metadata,
        agent: optional(
          Type.Unsafe<PatchedAgent>(
            Type.Object(details.patchesModel ? { ...settings, ...model } : settings, closed),
          ),
        ),
      },
      closed,
    ),
  }
}

export type SessionBodies = ReturnType<typeof sessionBodies>

/** An entry of POST files and of `environment.files`. */
export function fileSchema(details: OpenDetails) {
  const { entryTypes } = details.files
  return Type.Object(
    {
      type: Type.Enum([...entryTypes]),
      path: Type.String({ minLength: 1, maxLength: 1024 }),
      data: Type.String({ description: 'Base64; of a `text` entry the text itself.' }),
    },
    closed,
  )
}

/** Output shaping, requested of the model and not enforced. */
export function textSchema(details: OpenDetails): TSchema {
  return Type.Object(
    { verbosity: optional(Type.Enum([...details.verbosities])), format: optional(details.textFormat) },
    closed,
  )
}
