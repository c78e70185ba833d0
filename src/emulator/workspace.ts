import type { Clock, Timer } from './clock.ts'

export const WORKSPACE_DIRECTORY = '/workspace'
const OUTPUTS = 'outputs/'

/**
 * `none`: never started. `gone`: reclaimed at the end of its lifetime; the next input creates
 * another.
 */
export type WorkspaceState = 'none' | 'running' | 'paused' | 'gone'

/**
 * A file of the sandbox. `bytes` is null if only the size is needed, because such a large file can
 * never be read.
 */
export interface WorkspaceFile {
  size: number
  bytes: Uint8Array | null
}

/** A file under `outputs/` that will be published as an artifact. */
export interface OutputFile extends WorkspaceFile {
  path: string
}

export interface Snapshot {
  at: number
  files: Map<string, WorkspaceFile>
}

/** The complete state of a workspace: it is restored from this. */
export interface WorkspaceRecord {
  state: WorkspaceState
  usedMs: number
  since: number
  files: Map<string, WorkspaceFile>
  snapshot: Snapshot | null
  unpublished: string[]
}

/** The owner's reactions to changes of the workspace. */
interface WorkspaceOwner {
  paused(): void
  reclaimed(): void
}

/**
 * The sandbox of one session. It pauses when it had no work for a while, and resumes with the next work. At the end of its
 * lifetime it is reclaimed; the time of pauses does not count (rule STA-37).
 */
export class Workspace {
  readonly #clock: Clock
  readonly #limits: { workspaceLifetimeMs: number; workspaceIdleMs: number }
  readonly #owner: WorkspaceOwner
  #idle: Timer | undefined
  #life: Timer | undefined
  /** Running time before `#since`, milliseconds. */
  #usedMs = 0
  #since = 0
  #unpublished = new Set<string>()
  state: WorkspaceState = 'none'
  files = new Map<string, WorkspaceFile>()
  /** The listing: the files at the time of the snapshot. */
  snapshot: Snapshot | null = null

  constructor(
    clock: Clock,
    limits: { workspaceLifetimeMs: number; workspaceIdleMs: number },
    owner: WorkspaceOwner,
  ) {
    this.#clock = clock
    this.#limits = limits
    this.#owner = owner
  }

  /** It is running or paused. */
  get exists(): boolean {
    return this.state === 'running' || this.state === 'paused'
  }

  /** Starts the workspace and keeps it running. Returns what that took; `up`: it was running already. */
  wake(): 'created' | 'resumed' | 'up' {
    this.#idle?.cancel()
    if (this.state === 'running') return 'up'
    const was = this.state
    this.state = 'running'
    this.#since = this.#clock.now()
    if (was !== 'paused') {
      this.#usedMs = 0
      this.files = new Map()
      this.#unpublished.clear()
    }
    this.#live()
    return was === 'paused' ? 'resumed' : 'created'
  }

  /** The last work in the workspace has ended: it pauses after a while without new work. */
  idle(): void {
    if (this.state !== 'running') return
    this.#idle?.cancel()
    this.#idle = this.#clock.after(this.#limits.workspaceIdleMs, () => this.#pause())
  }

  /** Writes a file; files under `outputs/` will be published. */
  write(path: string, file: WorkspaceFile): void {
    this.files.set(path, file)
    if (path.startsWith(OUTPUTS)) this.#unpublished.add(path)
  }

  /** The current content of the files under `outputs/` that were written since the last collection. */
  takeOutputs(): OutputFile[] {
    const paths = [...this.#unpublished]
    this.#unpublished.clear()
    return paths.flatMap((path) => {
      const file = this.files.get(path)
      return file === undefined ? [] : [{ path, ...file }]
    })
  }

  capture(): Snapshot {
    this.snapshot = { at: this.#clock.now(), files: new Map(this.files) }
    return this.snapshot
  }

  /** The workspace is lost with all its content, before the end of its lifetime. */
  lose(): void {
    this.close()
    this.state = 'gone'
    this.files = new Map()
  }

  record(): WorkspaceRecord {
    const { state, files, snapshot } = this
    return {
      state,
      usedMs: this.#usedMs,
      since: this.#since,
      files,
      snapshot,
      unpublished: [...this.#unpublished],
    }
  }

  /** Restores the state of an earlier process; the work under way must be registered again. */
  restore(record: WorkspaceRecord): void {
    this.state = record.state
    this.files = record.files
    this.snapshot = record.snapshot
    this.#usedMs = record.usedMs
    this.#since = record.since
    this.#unpublished = new Set(record.unpublished)
    if (this.state !== 'running') return
    this.#live()
    this.idle()
  }

  /** The lifetime of the workspace has ended, or its host has stopped. */
  reclaim(): void {
    this.close()
    this.capture()
    this.state = 'gone'
    this.files = new Map()
    this.#owner.reclaimed()
  }

  close(): void {
    this.#idle?.cancel()
    this.#life?.cancel()
  }

  #pause(): void {
    this.#life?.cancel()
    this.#usedMs += this.#clock.now() - this.#since
    this.state = 'paused'
    this.capture()
    this.#owner.paused()
  }

  #live(): void {
    const leftMs = this.#limits.workspaceLifetimeMs - this.#usedMs - (this.#clock.now() - this.#since)
    this.#life = this.#clock.after(leftMs, () => this.reclaim())
  }
}
