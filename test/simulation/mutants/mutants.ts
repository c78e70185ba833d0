import { CALLBACKS } from './callbacks.ts'
import { CHANNELS } from './channels.ts'
import { CLIENT } from './client.ts'
import { FOUND } from './found.ts'
import type { Mutant } from './mutant.ts'
import { READINGS } from './readings.ts'
import { REPLICAS } from './replicas.ts'
import { SCOPE } from './scope.ts'
import { STORE } from './store.ts'
import { DELIVERY } from './tested/delivery.ts'
import { STREAM } from './tested/stream.ts'
import { DOORS } from './tested/doors.ts'
import { FACE } from './tested/face.ts'
import { FILES } from './tested/files.ts'
import { TOOLS } from './tools.ts'
import { UPKEEP } from './upkeep.ts'

/** Plausible bugs. The simulation, or the named test, must find each of them. */
export const MUTANTS: readonly Mutant[] = [
  ...STORE,
  ...READINGS,
  ...CHANNELS,
  ...CALLBACKS,
  ...TOOLS,
  ...CLIENT,
  ...UPKEEP,
  ...SCOPE,
  ...REPLICAS,
  ...FOUND,
  ...DOORS,
  ...DELIVERY,
  ...STREAM,
  ...FILES,
  ...FACE,
]
