/** What a process of the bench can be asked, by name. */
export type Methods = Readonly<Record<string, (argument: unknown) => unknown>>

interface Question {
  number: number
  method: string
  argument: unknown
}

export interface Reply {
  number: number
  value?: unknown
  fault?: string
}

/** Answers the process that forked this one; ends with it. */
export function serve(methods: Methods): void {
  const all: Methods = { ...methods, ready: () => undefined }
  process.on('message', (message) => {
    if (isQuestion(message)) void answer(all, message)
  })
  process.once('disconnect', () => process.exit())
}

async function answer(methods: Methods, { number, method, argument }: Question): Promise<void> {
  try {
    const run = methods[method]
    if (run === undefined) throw new Error(`there is no "${method}"`)
    process.send?.({ number, value: await run(argument) } satisfies Reply)
  } catch (error) {
    process.send?.({ number, fault: error instanceof Error ? error.message : String(error) } satisfies Reply)
  }
}

function isQuestion(message: unknown): message is Question {
  return isReply(message) && 'method' in message && typeof message.method === 'string'
}

export function isReply(message: unknown): message is Reply {
  return (
    typeof message === 'object' &&
    message !== null &&
    'number' in message &&
    typeof message.number === 'number'
  )
}
