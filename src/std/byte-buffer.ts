const EMPTY = Buffer.alloc(0)
/** Bytes of the first copy, unless the limit is lower. */
const FIRST = 1024

/**
 * A body of 1 MiB in one-byte chunks makes a million `Buffer` objects of about 400 bytes each. Each
 * chunk is copied into one buffer at once, so that its object can be freed.
 */
export class ByteBuffer {
  readonly #limit: number
  readonly #expected: number
  #bytes: Buffer = EMPTY
  #length = 0
  /** A body in one chunk, the usual case, is not copied. */
  #isBorrowed = false

  /**
   * `limit`: maximum in bytes. The buffer doubles when it is full, up to the limit. `expected`: the size of its first
   * copy, if the length of the body is known.
   */
  constructor(limit: number, expected = 0) {
    this.#limit = limit
    this.#expected = expected
  }

  get length(): number {
    return this.#length
  }

  /** @throws {RangeError} when the limit is exceeded: the caller must check the length first. */
  append(chunk: Uint8Array): void {
    if (chunk.length === 0) return
    const length = this.#length + chunk.length
    if (length > this.#limit) throw new RangeError(`${length} bytes exceed the limit of ${this.#limit}`)
    if (this.#length === 0) {
      this.#bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
      this.#isBorrowed = true
    } else {
      if (this.#isBorrowed || length > this.#bytes.length) this.#grow(length)
      this.#bytes.set(chunk, this.#length)
    }
    this.#length = length
  }

  /** What was appended; not copied. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #grow(wanted: number): void {
    const size = Math.min(this.#limit, Math.max(wanted, this.#bytes.length * 2, this.#expected, FIRST))
    const grown = Buffer.allocUnsafeSlow(size)
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#bytes = grown
    this.#isBorrowed = false
  }
}
