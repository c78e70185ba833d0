import { ByteBuffer } from '../std/byte-buffer.ts'
import { NetworkFault } from '../std/errors.ts'

const HEAD_END = Buffer.from('\r\n\r\n')
const [CR, LF] = Buffer.from('\r\n')
const COLON = 0x3a

/** How long an idle connection is kept, milliseconds: if its server does not say how long, and at most if it does. */
const KEPT = 4000
const KEPT_MAX = 600_000
/**
 * A connection is not used during this time before the end that its server announced, because a request could be
 * lost.
 */
const KEPT_MARGIN = 2000

/**
 * - `head`: a status line and headers, also those of interim answers
 * - `sized`, `endless`: a body of known length; a body that ends with the connection
 * - `chunk size`, `chunk`, `chunk end`, `trailers`: a chunked body
 * - `complete`: no byte is expected
 */
type State = 'head' | 'sized' | 'endless' | 'chunk size' | 'chunk' | 'chunk end' | 'trailers' | 'complete'

/**
 * Reads the answers of one connection, one at a time, as strictly as undici's parser (test/system/answers.test.ts
 * compares the two). Bytes are processed at once, so the caller may reuse its chunk.
 */
export class AnswerParser {
  readonly #maxHead: number
  #maxBody = 0
  #state: State = 'complete'
  /** An incomplete head, or an incomplete line of a chunked body. */
  #rest = ''
  /** The last characters of a head in `#rest`: the mark of its end may be cut. */
  #tail = ''
  /** Bytes of interim answers and empty lines before the answer itself. */
  #interim = 0
  #framing = new Framing()
  #status = 0
  /** The status line and the headers. */
  #head = ''
  /** Remaining bytes of a body of known length, or of a chunk. */
  #left = 0
  #trailers = 0
  #text = ''
  #body: ByteBuffer | null = null
  #truncated = false
  #begun = false
  #passOn: ((piece: Buffer) => void) | null = null

  /** `maxHead`: the limit in bytes of one head, of all interim answers, and of all trailers. */
  constructor(maxHead: number) {
    this.#maxHead = maxHead
  }

  /** A whole answer begins with the next byte. Pieces of its body are passed on as they come, and are not kept. */
  expectStream(passOn: (piece: Buffer) => void): void {
    this.expect(0)
    this.#passOn = passOn
  }

  /** An answer begins with the next byte. At most `maxBody` bytes of its body are kept. */
  expect(maxBody: number): void {
    this.#maxBody = maxBody
    this.#passOn = null
    this.#state = 'head'
    this.#rest = ''
    this.#tail = ''
    this.#interim = 0
    this.#text = ''
    this.#body = null
    this.#truncated = false
    this.#begun = false
  }

  /** At least one byte of the answer came. */
  get begun(): boolean {
    return this.#begun
  }

  /** The head is complete. */
  get headed(): boolean {
    return this.#state !== 'head'
  }

  /** The answer is complete, or `maxBody` bytes of its body came. */
  get complete(): boolean {
    return this.#state === 'complete'
  }

  /**
   * @returns how many bytes of `chunk` belong to the answer.
   * @throws {NetworkFault} `unreadable`, if the answer is not HTTP/1.1.
   */
  read(chunk: Buffer): number {
    let at = 0
    while (at < chunk.length && this.#state !== 'complete') at = this.#step(chunk, at)
    return at
  }

  /** The peer ended the connection. @returns whether this completes the answer. */
  end(): boolean {
    if (this.#state === 'endless') this.#complete()
    return this.complete
  }

  get reply(): { status: number; headers: Record<string, string>; body: string; truncated: boolean } {
    return new Reply(this.#status, this.#head, this.#text, this.#truncated)
  }

  /** Milliseconds that the connection may be kept for another request; 0: it must be closed. */
  get keptFor(): number {
    return this.#truncated ? 0 : this.#framing.keptFor
  }

  #step(chunk: Buffer, at: number): number {
    switch (this.#state) {
      case 'head':
        return this.#readHead(chunk, at)
      case 'sized':
      case 'chunk':
        return this.#readSized(chunk, at)
      case 'endless':
        this.#keep(chunk, at, chunk.length)
        return chunk.length
      case 'chunk size':
      case 'chunk end':
      case 'trailers':
        return this.#readLine(chunk, at)
      case 'complete':
        return at
    }
  }

  #readHead(chunk: Buffer, from: number): number {
    let at = from
    // An empty line before a status line is skipped.
    while (this.#rest === '' && at < chunk.length && (chunk[at] === CR || chunk[at] === LF)) at++
    this.#countInterim(at - from)
    if (at === chunk.length) return at
    this.#begun = true
    const end = this.#rest === '' ? chunk.indexOf(HEAD_END, at) : -1
    // Nearly every head comes in one piece.
    if (end !== -1) {
      this.#acceptHead(chunk.toString('latin1', at, end + 2))
      return end + HEAD_END.length
    }
    const known = this.#rest.length
    const piece = chunk.toString('latin1', at, Math.min(chunk.length, at + this.#maxHead + 1))
    // A head may come byte by byte: only new characters are searched, and the pieces are joined at its end.
    const text = this.#rest + piece
    const recent = this.#tail + piece
    const recentEnd = recent.indexOf('\r\n\r\n')
    if (recentEnd !== -1) {
      const textEnd = known - this.#tail.length + recentEnd
      this.#rest = ''
      this.#tail = ''
      this.#acceptHead(text.slice(0, textEnd + 2))
      return at + textEnd + HEAD_END.length - known
    }
    if (text.length > this.#maxHead) throw unreadable('its headers are too long')
    // A server of another protocol may never send the end of a head.
    if ((known < MINOR && !'HTTP/1.'.startsWith(text.slice(0, MINOR))) || /[^\r]\n/.test(recent))
      throw unreadable('it is not HTTP/1.1')
    this.#rest = text
    this.#tail = recent.slice(1 - HEAD_END.length)
    return chunk.length
  }

  /** A server may send interim answers (status 103) for ever. */
  #countInterim(bytes: number): void {
    this.#interim += bytes
    if (this.#interim > this.#maxHead) throw unreadable('its interim answers are too long')
  }

  #acceptHead(text: string): void {
    // Most heads of one server are equal: only `date` changes, once a second.
    if (text === this.#head) return this.#beginBody()
    if (text.length > this.#maxHead) throw unreadable('its headers are too long')
    const lineEnd = text.indexOf('\r\n')
    const status = statusOf(text, lineEnd)
    const framing = new Framing()
    framing.readHeaders(text, lineEnd + 2)
    framing.decide(status, text.charCodeAt(MINOR) === ONE)
    if (status === 101) throw unreadable('101 Switching Protocols, which the request did not ask for')
    if (status < 200) return this.#countInterim(text.length + 2)
    this.#status = status
    this.#head = text
    this.#framing = framing
    this.#beginBody()
  }

  #beginBody(): void {
    const framing = this.#framing
    this.#left = framing.length ?? 0
    if (framing.chunked) this.#state = 'chunk size'
    else if (framing.length === null) this.#state = 'endless'
    else if (framing.length > 0) this.#state = 'sized'
    else this.#complete()
  }

  #readSized(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#left)
    this.#left -= end - at
    this.#keep(chunk, at, end)
    if (this.#left > 0 || this.#state === 'complete') return end
    if (this.#state === 'chunk') this.#state = 'chunk end'
    else this.#complete()
    return end
  }

  /** A body that comes in one piece is decoded in place; several pieces are copied. */
  #keep(chunk: Buffer, from: number, to: number): void {
    if (this.#passOn !== null) return this.#passOn(chunk.subarray(from, to))
    const kept = this.#body?.length ?? 0
    const end = Math.min(to, from + this.#maxBody - kept)
    this.#truncated = end < to
    if (this.#state === 'sized' && this.#left === 0 && this.#body === null) {
      this.#text = chunk.toString('utf8', from, end)
    } else if (end > from) {
      this.#body ??= new ByteBuffer(this.#maxBody)
      // The caller reuses its chunk.
      this.#body.append(kept === 0 ? Buffer.from(chunk.subarray(from, end)) : chunk.subarray(from, end))
    }
    if (this.#truncated) this.#complete()
  }

  #readLine(chunk: Buffer, at: number): number {
    const lf = chunk.indexOf('\n', at)
    const end = lf === -1 ? chunk.length : lf
    const text = this.#rest + chunk.toString('latin1', at, Math.min(end, at + this.#maxHead + 1))
    if (text.length > this.#maxHead) throw unreadable('a line of its body is too long')
    this.#rest = lf === -1 ? text : ''
    if (lf !== -1) {
      if (!text.endsWith('\r')) throw unreadable('a line of its body ends without CR LF')
      this.#acceptLine(text.slice(0, -1))
    }
    return lf === -1 ? end : lf + 1
  }

  #acceptLine(line: string): void {
    if (this.#state === 'chunk size') {
      const size = CHUNK_SIZE.exec(line)?.[1]
      if (size === undefined || size.length > SIZE_DIGITS)
        throw unreadable('the size of a chunk is not a number')
      this.#left = parseInt(size, 16)
      this.#trailers = 0
      this.#state = this.#left > 0 ? 'chunk' : 'trailers'
    } else if (this.#state === 'chunk end') {
      if (line !== '') throw unreadable('a chunk is longer than its size')
      this.#state = 'chunk size'
    } else if (line === '') this.#complete()
    else {
      this.#trailers += line.length
      if (this.#trailers > this.#maxHead) throw unreadable('its trailers are too long')
      const trailer = new Framing()
      trailer.readHeaders(`${line}\r\n`, 0)
      if (trailer.length !== null) throw unreadable('a length follows its body')
    }
  }

  #complete(): void {
    this.#state = 'complete'
    if (this.#body !== null) this.#text = this.#body.bytes().toString()
    this.#body = null
  }
}

/** How the end of an answer's body is found, and how long its connection is kept. */
class Framing {
  chunked = false
  /** null: until the connection ends. */
  length: number | null = null
  keptFor = 0
  #encoding: string | null = null
  #connection = ''
  #keepAlive = ''

  /** `text`: lines that each end with CR LF. */
  readHeaders(text: string, from: number): void {
    let at = from
    while (at < text.length) at = this.#readHeader(text, at)
  }

  /** @returns where the next header begins. */
  #readHeader(text: string, from: number): number {
    let at = from
    while (TOKEN[text.charCodeAt(at)] === 1) at++
    if (at === from || text.charCodeAt(at) !== COLON) throw unreadable('a line of its head is not a header')
    const nameEnd = at++
    while (text.charCodeAt(at) === SPACE || text.charCodeAt(at) === TAB) at++
    const valueAt = at
    while (VALUE[text.charCodeAt(at)] === 1) at++
    if (text.charCodeAt(at) !== CR || text.charCodeAt(at + 1) !== LF)
      throw unreadable('a header has a character that is not allowed')
    if (FRAMING_LENGTHS.has(nameEnd - from))
      this.#note(text.slice(from, nameEnd).toLowerCase(), text.slice(valueAt, at))
    return at + 2
  }

  #note(name: string, value: string): void {
    switch (name) {
      case 'content-length':
        if (this.length !== null) throw unreadable('it has several lengths')
        if (!/^\d{1,15}$/.test(value)) throw unreadable('its length is not a number')
        this.length = Number(value)
        break
      case 'transfer-encoding':
        if (this.#encoding !== null || value === '') throw unreadable('its transfer encoding is not clear')
        this.#encoding = value
        break
      case 'connection':
      case 'proxy-connection':
        this.#connection += `,${value.toLowerCase()}`
        break
      case 'keep-alive':
        this.#keepAlive += `,${value}`
        break
      default:
    }
  }

  /** Called after all headers. `modern`: HTTP/1.1, which keeps a connection unless the answer says otherwise. */
  decide(status: number, modern: boolean): void {
    const encoding = this.#encoding
    if (encoding !== null && this.length !== null) throw unreadable('it has a length and a transfer encoding')
    const kept = modern ? !has(this.#connection, 'close') : has(this.#connection, 'keep-alive')
    const bodiless = status < 200 || status === 204 || status === 304
    // If such an answer announces a body, the body could be read as the next answer.
    const violated = bodiless && (encoding !== null || (this.length ?? 0) > 0)
    if (bodiless) this.length = 0
    else this.chunked = encoding !== null && /(?:^|,)[\t ]*chunked[\t ]*$/i.test(encoding)
    const endless = this.length === null && !this.chunked
    this.keptFor = kept && !violated && !endless ? keptFor(this.#keepAlive) : 0
  }
}

/** The reply to a request. Its headers are parsed when they are first read; most are never read. */
class Reply {
  readonly status: number
  readonly body: string
  readonly truncated: boolean
  readonly #head: string
  #headers: Record<string, string> | null = null

  constructor(status: number, head: string, body: string, truncated: boolean) {
    this.status = status
    this.#head = head
    this.body = body
    this.truncated = truncated
  }

  /** Several values of one name are joined. */
  get headers(): Record<string, string> {
    this.#headers ??= headersOf(this.#head)
    return this.#headers
  }
}

function headersOf(head: string): Record<string, string> {
  const headers = new Map<string, string>()
  for (const line of head.split('\r\n').slice(1)) {
    const colon = line.indexOf(':')
    if (colon === -1) continue
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).replace(/^[\t ]+|[\t ]+$/g, '')
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  return Object.fromEntries(headers)
}

/** Whether `token` is in a list. Most lists are empty or have one other token. */
function has(list: string, token: string): boolean {
  return list.includes(token) && list.split(',').some((one) => one.trim() === token)
}

/** @throws {NetworkFault} if `text` does not begin with the status line of HTTP/1.0 or 1.1, up to `end`. */
function statusOf(text: string, end: number): number {
  const digit = (at: number): number => {
    const value = text.charCodeAt(STATUS + at) - ZERO
    return value >= 0 && value <= 9 ? value : Number.NaN
  }
  const status = digit(0) * 100 + digit(1) * 10 + digit(2)
  const version = text.charCodeAt(MINOR)
  if (
    text.startsWith('HTTP/1.') &&
    (version === ONE || version === ZERO) &&
    text.charCodeAt(STATUS - 1) === SPACE &&
    (end === STATUS + 3 || text.charCodeAt(STATUS + 3) === SPACE) &&
    status >= 100 &&
    text.lastIndexOf('\n', end - 1) === -1 &&
    text.lastIndexOf('\r', end - 1) === -1
  )
    return status
  throw unreadable('its status line is not of HTTP/1.1')
}

function keptFor(hint: string): number {
  const seconds = hint === '' ? undefined : /(?:^|,)[\t ]*timeout=(\d+)/i.exec(hint)?.[1]
  if (seconds === undefined) return KEPT
  return Math.min(Math.max(0, Number(seconds) * 1000 - KEPT_MARGIN), KEPT_MAX)
}

function unreadable(reason: string): NetworkFault {
  return new NetworkFault('unreadable', `the answer cannot be read: ${reason}`)
}

/** The positions of the minor version and of the status in a status line. */
const MINOR = 'HTTP/1.'.length
const STATUS = MINOR + 2
const ZERO = 0x30
const ONE = 0x31
/** Digits of a chunk's size: no body has 2^52 bytes. */
const SIZE_DIGITS = 13
/** Extensions of a chunk are accepted and ignored. */
const CHUNK_SIZE =
  /^([0-9a-f]+)(?:;[!#$%&'*+.^_`|~0-9a-z-]+(?:=(?:[!#$%&'*+.^_`|~0-9a-z-]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?)*$/i

const SPACE = 0x20
const TAB = 0x09

/** 1 for each character that the name, or the value, of a header may have. */
const TOKEN = new Uint8Array(256)
for (const char of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
  TOKEN[char.charCodeAt(0)] = 1
const VALUE = new Uint8Array(256).fill(1, SPACE)
VALUE[TAB] = 1
VALUE[0x7f] = 0
/** The lengths of the names of headers about the body or the connection. */
const FRAMING_LENGTHS = new Set(
  ['content-length', 'transfer-encoding', 'connection', 'proxy-connection', 'keep-alive'].map(
    ({ length }) => length,
  ),
)
