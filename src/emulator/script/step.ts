/** One step of the scripted agent. */
export type Step =
  | { do: 'say'; text: string }
  | { do: 'think'; text: string }
  | { do: 'call'; calls: FunctionCall[] }
  | { do: 'shell'; command: string }
  | { do: 'write'; path: string; content: string }
  | { do: 'write_size'; path: string; bytes: number }
  | { do: 'approve'; step: Step; line: string }
  | { do: 'ask'; question: string }
  | { do: 'preview'; port: number }
  | { do: 'wait'; ms: number }
  | { do: 'fail'; reason: string }
  | { do: 'hang' }
  | { do: 'cannot_start'; reason: string }
  | { do: 'burst'; count: number; bytes: number }
  | { do: 'collect'; ms: number }

export interface FunctionCall {
  name: string
  /** May hold `{{last}}` in any string. */
  arguments: unknown
}
