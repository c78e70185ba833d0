const KIB = 1024
const MIB = 1024 * KIB

/** Every limit that the emulator enforces. If the interface states it, it has that value. Tests may lower any of them. */
export interface Limits {
  /** Concurrent sessions of the organization. */
  sessions: number
  /** Messages that may wait behind a running turn. */
  queuedMessages: number
  /** Body bytes of any request but a session's creation. */
  bodyBytes: number
  /** Body bytes of `POST /v1/sessions`. */
  createBodyBytes: number
  /** Characters of the idempotency header's value. */
  idempotencyCharacters: number
  /** Characters of one metadata value. */
  metadataCharacters: number
  /** Streams that one token, and the whole organization, may hold open. */
  streamsPerToken: number
  streamsPerOrganization: number
  /** How long a stream's slot stays in use after its client left. */
  streamSlotMs: number
  pingMs: number
  /** The `retry:` hint of a stream. */
  retryMs: number
  /** Unread bytes of a stream: above the first limit transient frames are dropped, above the second it is closed. */
  dropTransientBytes: number
  closeStreamBytes: number
  /** Events that one reconnect replays. */
  replayEvents: number
  /** Rate buckets of a token: their size, and the requests that are added in a second. */
  creationBurst: number
  creationPerSecond: number
  readsBurst: number
  readsPerSecond: number
  workspaceLifetimeMs: number
  workspaceIdleMs: number
  /** How long the bridge takes to restart after the tools were replaced. */
  bridgeRestartMs: number
  /** How long artifacts are collected after a turn's end. */
  collectMs: number
  /** Longest that `turn.completed` waits for the artifacts. */
  artifactWaitMs: number
  artifactBytes: number
  artifactsTotalBytes: number
  /**
   * Of seeded or written files: the most decoded bytes of one, the most of all files of a request, and the most files
   * of a request.
   */
  fileBytes: number
  filesTotalBytes: number
  files: number
  /** The most characters of text in the answer with a file's content, and the most bytes of paths in a listing. */
  inlineCharacters: number
  listingBytes: number
  webhookTimeoutMs: number
  /** Waits before the second and every later attempt of a webhook delivery: six attempts over about nine hours. */
  webhookRetryMs: readonly number[]
  modelConnections: number
  savedAgents: number
  /** Persisted events kept for replay, transcripts and the ledger (about 0.5 KiB each); the oldest are forgotten. */
  events: number
  /** Answers, messages and deliveries kept in the ledger, each. */
  ledgerEntries: number
}

/** The limits of the interface; a profile adds those that it leaves open. */
export const STATED_LIMITS = {
  sessions: 25,
  queuedMessages: 5,
  bodyBytes: MIB,
  createBodyBytes: 16 * MIB,
  idempotencyCharacters: 255,
  streamSlotMs: 4500,
  pingMs: 15_000,
  dropTransientBytes: MIB,
  closeStreamBytes: 8 * MIB,
  replayEvents: 50_000,
  workspaceLifetimeMs: 7_200_000,
  workspaceIdleMs: 300_000,
  bridgeRestartMs: 100,
  collectMs: 25,
  artifactWaitMs: 30_000,
  webhookTimeoutMs: 10_000,
  webhookRetryMs: [5000, 300_000, 1_800_000, 7_200_000, 23_100_000],
  modelConnections: 25,
  savedAgents: 25,
  events: 500_000,
  ledgerEntries: 100_000,
} as const satisfies Partial<Limits>

/** The figures that the interface does not show. */
export type OpenLimits = Omit<Limits, keyof typeof STATED_LIMITS>
