/** One step of the scripted agent. Every string of it may hold `{{last}}` and the like (`script/fill.ts`). */
export type Step =
  | { do: 'say'; text: string }
  | { do: 'think'; text: string }
  | { do: 'call'; calls: FunctionCall[] }
  | { do: 'shell'; command: string; output?: string; exitCode?: number }
  | { do: 'read'; path: string }
  | { do: 'write'; path: string; content: string }
  | { do: 'write_size'; path: string; bytes: number }
  | { do: 'serve'; command: string; port: number }
  | { do: 'preview'; port: number }
  | { do: 'commit'; message: string }
  | { do: 'use'; tool: string; arguments: unknown; output?: string }
  | { do: 'approve'; step: Step; line: string }
  | { do: 'ask'; question: string }
  | { do: 'todos'; todos: Todo[] }
  | { do: 'compact'; messages: number }
  | { do: 'wait'; ms: number }
  | { do: 'fail'; reason: string; code?: string }
  | { do: 'hang' }
  | { do: 'cannot_start'; reason: string }
  | { do: 'burst'; count: number; bytes: number }
  | { do: 'collect'; ms: number }
  | { do: 'faults'; settings: Readonly<Record<string, unknown>> }

export interface FunctionCall {
  name: string
  arguments: unknown
}

export interface Todo {
  text: string
  done: boolean
}
