import { startEmulator, type EmulatorOptions } from '../../src/emulator/index.ts'

/** The service as a process of its own, to be killed like one. It ends with the process that started it. */

const options = JSON.parse(process.argv[2] ?? '{}') as EmulatorOptions
await startEmulator(options)
process.stdin.on('end', () => process.exit()).resume()
process.stdout.write('ready\n')
