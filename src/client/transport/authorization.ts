import { ServiceError } from '../../core/errors.ts'

/** The token, and whether the service still takes it. A rejected one is never sent again (rule AUT-28). */
export class Authorization {
  #token: string
  #accepted = true
  readonly #listeners = new Set<(accepted: boolean) => void>()

  constructor(token: string) {
    this.#token = token.trim()
  }

  get accepted(): boolean {
    return this.#accepted
  }

  /** @throws {ServiceError} `unauthorized` after a rejection, until the token changes. */
  token(): string {
    if (this.#accepted) return this.#token
    throw new ServiceError({
      code: 'unauthorized',
      status: 401,
      message: 'the service rejected the token; nothing is sent until it changes',
    })
  }

  /** The same token again changes nothing. */
  replace(token: string): void {
    if (token.trim() === this.#token) return
    this.#token = token.trim()
    this.#set(true)
  }

  /** `token` is the one that was sent: by now there may be another. */
  reject(token: string): void {
    if (token === this.#token) this.#set(false)
  }

  onChange(listener: (accepted: boolean) => void): void {
    this.#listeners.add(listener)
  }

  #set(accepted: boolean): void {
    if (this.#accepted === accepted) return
    this.#accepted = accepted
    for (const listener of this.#listeners) listener(accepted)
  }
}
