import { createInterface } from 'node:readline'
import { OperatorError } from '../std/errors.ts'

/** Questions to a person. */
export interface Dialogue {
  /**
   * @throws {OperatorError} when the person ends the dialogue with Ctrl-C or Ctrl-D.
   */
  ask(question: string): Promise<string>
  close(): void
}

/** On a terminal. Each of several pasted lines answers one question. */
export function openDialogue({ stdin, stderr }: Pick<NodeJS.Process, 'stdin' | 'stderr'>): Dialogue {
  const lines = createInterface({ input: stdin, output: stderr })
  let open = true
  lines.once('close', () => (open = false))
  const answers = lines[Symbol.asyncIterator]()
  return {
    async ask(question) {
      lines.setPrompt(question)
      if (open) lines.prompt()
      const { done, value } = await answers.next()
      if (done === true)
        throw new OperatorError('the input ended before the question was answered: nothing was written', 2)
      return value
    },
    close: () => lines.close(),
  }
}
