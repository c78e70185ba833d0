import type { Static, TSchema } from 'typebox'
import type { Roll } from '../roll.ts'
import type { World } from '../world.ts'
import { actionSchema, answerSchema, deliverySchema, messageSchema, probeSchema } from './schema.ts'
import { journal, type Kept } from './shelf.ts'

/** The record of the emulator's requests and actions. */
export function keptLedger({ ledger }: World): Kept[] {
  return [
    journal({
      kind: 'action',
      schema: actionSchema,
      first: () => ledger.actions.forgotten,
      from: (place) => ledger.actions.from(place),
      final: ({ resolution }) => resolution !== null,
      write: ({ deadline: _deadline, resolve: _resolve, ...rest }) => rest,
      // The turn that waited for the action ended with the earlier process.
      read: (record) => ({ ...record, deadline: null, resolve: () => undefined }),
      restore: (actions, forgotten) => ledger.restoreActions(actions, forgotten),
    }),
    keptRoll('answer', answerSchema, ledger.answers),
    keptRoll('message', messageSchema, ledger.messages),
    keptRoll('probe', probeSchema, ledger.probes),
    keptRoll('delivery', deliverySchema, ledger.deliveries, ({ status }) => status !== 'pending'),
  ]
}

/** Entries that are written as they are. */
function keptRoll<S extends TSchema>(
  kind: string,
  schema: S,
  roll: Roll<Static<S> & object>,
  final: (entry: Static<S>) => boolean = () => true,
): Kept {
  return journal<Static<S> & object, S>({
    kind,
    schema,
    first: () => roll.forgotten,
    from: (place) => roll.from(place),
    final,
    write: (entry) => entry,
    read: (record) => record,
    restore: (entries, forgotten) => roll.restore(entries, forgotten),
  })
}
