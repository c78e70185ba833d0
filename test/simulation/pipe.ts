import { NetworkFault } from '../../src/std/errors.ts'

type Waiter = { resolve: (result: IteratorResult<Uint8Array>) => void; reject: (error: unknown) => void }

/** The reading end of a stream. */
export class ChunkQueue implements AsyncIterable<Uint8Array> {
  readonly #chunks: Uint8Array[] = []
  #end: 'clean' | NetworkFault | null = null
  #waiter: Waiter | null = null
  readonly #onReturn: () => void

  constructor(onReturn: () => void) {
    this.#onReturn = onReturn
  }

  push(chunk: Uint8Array): void {
    if (this.#end !== null) return
    if (this.#waiter === null) this.#chunks.push(chunk)
    else {
      this.#waiter.resolve({ done: false, value: chunk })
      this.#waiter = null
    }
  }

  end(how: 'clean' | NetworkFault): void {
    if (this.#end !== null) return
    this.#end = how
    const waiter = this.#waiter
    this.#waiter = null
    if (waiter === null) return
    if (how === 'clean') waiter.resolve({ done: true, value: undefined })
    else waiter.reject(how)
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return {
      next: () => this.#next(),
      return: async () => {
        this.#onReturn()
        return { done: true, value: undefined }
      },
    }
  }

  #next(): Promise<IteratorResult<Uint8Array>> {
    const chunk = this.#chunks.shift()
    if (chunk !== undefined) return Promise.resolve({ done: false, value: chunk })
    if (this.#end === 'clean') return Promise.resolve({ done: true, value: undefined })
    if (this.#end !== null) return Promise.reject(this.#end)
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject }
    })
  }
}
