import type { Artifact } from './artifact.ts'

const BLOCK = 512

/** The artifacts as a POSIX ustar archive, piece by piece; a path too long for the header gets a pax record. */
export function* tarOf(artifacts: readonly Artifact[]): Generator<Uint8Array> {
  for (const { path, bytes, createdAt } of artifacts) {
    const seconds = Math.floor(createdAt / 1000)
    if (Buffer.byteLength(path) > 100) {
      const record = paxPath(path)
      yield header('pax', record.length, seconds, 'x')
      yield padded(record)
    }
    yield header(path, bytes.length, seconds, '0')
    yield bytes
    yield Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)
  }
  yield Buffer.alloc(2 * BLOCK)
}

function header(path: string, size: number, seconds: number, type: string): Buffer {
  const block = Buffer.alloc(BLOCK)
  block.write(path, 0, 100)
  block.write('0000644\0', 100)
  block.write('0000000\0', 108)
  block.write('0000000\0', 116)
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  block.write(`${seconds.toString(8).padStart(11, '0')}\0`, 136)
  block.write(' '.repeat(8), 148)
  block.write(type, 156)
  block.write('ustar\u000000', 257)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

/** `<length> path=<path>\n`; the length includes its own digits. */
function paxPath(path: string): Buffer {
  const rest = Buffer.byteLength(` path=${path}\n`)
  let length = rest + String(rest).length
  if (rest + String(length).length !== length) length = rest + String(length).length
  return Buffer.from(`${length} path=${path}\n`)
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)])
}
