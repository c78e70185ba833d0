import type { Static } from 'typebox'
import type { Session } from '../session.ts'
import type { Turn } from '../turn.ts'
import type { OutputFile, WorkspaceFile, WorkspaceRecord } from '../workspace.ts'
import type { DataFile } from './file.ts'
import type { sessionSchema, turnSchema, workspaceSchema } from './schema.ts'

export type SessionRecord = Static<typeof sessionSchema>
type TurnRecord = Static<typeof turnSchema>
type FileRecord = TurnRecord['outputs'][number]

/** The record of a session; its turns and items have their own records. */
export function writeSession(file: DataFile, session: Session): SessionRecord {
  const { turns: _turns, items: _items, run, workspace, ...rest } = session
  const { tools, ...agent } = session.agent
  return {
    ...rest,
    agent: { ...agent, ...(tools === undefined ? {} : { tools }) },
    actions: session.actions.map(({ callId }) => callId),
    files: session.files.map(({ path, bytes }) => ({ path, bytes: file.hashOf(bytes) })),
    artifacts: session.artifacts.map((artifact) => ({ ...artifact, bytes: file.hashOf(artifact.bytes) })),
    run: run === null ? null : { turnId: run.turn?.id ?? null, collectMs: run.collectMs },
    workspace: writeWorkspace(file, workspace.record()),
  }
}

/** The fields of a session that are only in its own record. */
export function readSession(
  file: DataFile,
  record: SessionRecord,
): Omit<Session, 'actions' | 'workspace' | 'run' | 'turns' | 'items'> {
  const { actions: _actions, workspace: _workspace, run: _run, ...rest } = record
  return {
    ...rest,
    agent: { ...record.agent, tools: record.agent.tools },
    files: record.files.map(({ path, bytes }) => ({ path, bytes: file.bytes(bytes) })),
    artifacts: record.artifacts.map((artifact) => ({ ...artifact, bytes: file.bytes(artifact.bytes) })),
  }
}

export function readWorkspace(file: DataFile, record: SessionRecord['workspace']): WorkspaceRecord {
  const { snapshot } = record
  const filesOf = (files: readonly FileRecord[]): Map<string, WorkspaceFile> =>
    new Map(files.map(({ path, size, bytes }) => [path, { size, bytes: read(file, bytes) }]))
  return {
    ...record,
    files: filesOf(record.files),
    snapshot: snapshot === null ? null : { at: snapshot.at, files: filesOf(snapshot.files) },
  }
}

function writeWorkspace(file: DataFile, workspace: WorkspaceRecord): Static<typeof workspaceSchema> {
  const { snapshot } = workspace
  const listOf = (files: ReadonlyMap<string, WorkspaceFile>): FileRecord[] =>
    [...files].map(([path, { size, bytes }]) => ({ path, size, bytes: write(file, bytes) }))
  return {
    ...workspace,
    files: listOf(workspace.files),
    snapshot: snapshot === null ? null : { at: snapshot.at, files: listOf(snapshot.files) },
  }
}

export function writeTurn(file: DataFile, turn: Turn): TurnRecord {
  return { ...turn, outputs: turn.outputs.map((output) => ({ ...output, bytes: write(file, output.bytes) })) }
}

export function readTurn(file: DataFile, record: TurnRecord): Turn {
  const outputs: OutputFile[] = record.outputs.map((output) => ({
    ...output,
    bytes: read(file, output.bytes),
  }))
  return { ...record, outputs }
}

function write(file: DataFile, bytes: Uint8Array | null): string | null {
  return bytes === null ? null : file.hashOf(bytes)
}

function read(file: DataFile, name: string | null): Uint8Array | null {
  return name === null ? null : file.bytes(name)
}
