import type { LookupFunction } from 'node:net'

type Answer = Parameters<LookupFunction>[2]

/**
 * The DNS server of one handler's name does not answer, and each new connection asked for that name: two such questions take
 * all threads that Node has for them, and no other name was resolved. So questions that are alike are asked once.
 */
export function createLookup(resolve: LookupFunction): LookupFunction {
  const waiting = new Map<string, Answer[]>()
  return (name, options, answer) => {
    const question = `${name} ${JSON.stringify(options)}`
    const others = waiting.get(question)
    if (others !== undefined) return void others.push(answer)
    const all = [answer]
    waiting.set(question, all)
    resolve(name, options, (...found) => {
      waiting.delete(question)
      for (const one of all) one(...found)
    })
  }
}
