import { EVERY, SEVERAL, type Fault, type Fired } from './faults.ts'

/** Faults as one word of a command line: `12:crash,40:reset`. */
export function faultsText(fired: readonly Pick<Fired, 'passage' | 'fault'>[]): string {
  return fired.map(({ passage, fault }) => `${passage}:${fault}`).join(',')
}

/** @throws {TypeError} on a word that is no list of faults. */
export function parseFaults(text: string): Map<number, Fault> {
  const faults = new Map<number, Fault>()
  for (const part of text === '' ? [] : text.split(',')) {
    const [passage, name] = part.split(':')
    const fault = [...EVERY, ...SEVERAL].find((known) => known === name)
    if (fault === undefined || !/^\d+$/.test(passage ?? ''))
      throw new TypeError(`"${part}" is no fault, such as 12:crash`)
    faults.set(Number(passage), fault)
  }
  return faults
}
