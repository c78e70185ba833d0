import { Type } from 'typebox'
import { Child } from '../child.ts'
import { handlerAt, type Bench } from '../scenario.ts'
import { connected } from '../stage.ts'
import { Subject } from '../subject.ts'

/** Texts that the emulator's agent understands. */
export const PLAIN_TURN = 'say Hello'
export const CALLING_TURN = 'call lookup_order {"order_id":"42"}'

const Address = Type.Object({ url: Type.String(), token: Type.String(), answerPath: Type.String() })

/** The emulator with one session, and the application with one tool. */
export class Emulated {
  readonly service: Child
  readonly receiver: Child
  readonly #bench: Bench
  readonly #address: Type.Static<typeof Address>
  readonly #app: string

  private constructor(
    bench: Bench,
    service: Child,
    receiver: Child,
    address: Type.Static<typeof Address>,
    app: string,
  ) {
    this.#bench = bench
    this.service = service
    this.receiver = receiver
    this.#address = address
    this.#app = app
  }

  static async open(bench: Bench): Promise<Emulated> {
    const receiver = bench.use(await Child.fork('receiver'))
    const service = bench.use(await Child.fork('service'))
    const app = await receiver.ask('address', Type.String())
    return new Emulated(bench, service, receiver, await service.ask('address', Address), app)
  }

  async startSubject(): Promise<Subject> {
    await this.receiver.do('expect', { frames: 0, first: 1 })
    const { url, token } = this.#address
    const subject = await Subject.start(this.#bench.folder(), {
      service: { base_url: url, token },
      handlers: [handlerAt(`${this.#app}/callbacks`)],
      tools: [
        { name: 'lookup_order', url: `${this.#app}/tool`, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
      ],
    })
    await connected(this.service)
    return subject
  }

  /** Answers calls by hand. */
  async startLoop(): Promise<Child> {
    const { url, token, answerPath } = this.#address
    const loop = await Child.fork('loop')
    await loop.do('follow', { service: url, token, answerPath, tool: `${this.#app}/tool` })
    await connected(this.service)
    return loop
  }

  /** Plays a turn. @returns milliseconds from its call's frame to the answer. */
  async turn(text: string): Promise<number> {
    return await this.service.ask('turn', Type.Number(), { text })
  }
}
