import type { Fault } from '../../checker/history.ts'
import type { ReplicaWorld } from './world.ts'

/** Each write of these tables is in a transaction that the fence has admitted. */
const GUARDED = [
  'facts',
  'lanes',
  'delivery_rows',
  'calls',
  'sessions',
  'turns',
  'actions',
  'hints',
  'checkpoints',
]

/**
 * Triggers of ours note each transaction that the fence admitted, each that wrote, and each process that was fenced. A row of
 * `outcomes` has the owner of the shard at that time; one of `fencings`, for how long the process had renewed nothing.
 */
const WATCH = `
  CREATE SCHEMA watch;
  CREATE TABLE watch.admitted (xid xid8, replica text, was_fenced boolean);
  CREATE INDEX ON watch.admitted (xid);
  CREATE TABLE watch.writes (xid xid8, name text);
  CREATE TABLE watch.outcomes (xid xid8, shard int, owner text);
  CREATE FUNCTION watch.note_admission() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO watch.admitted VALUES (pg_current_xact_id(), NEW.replica,
      OLD.fenced OR EXISTS (SELECT 1 FROM sidecar.replicas r WHERE r.id = NEW.replica AND r.fenced));
    RETURN NULL;
  END $$;
  CREATE TRIGGER watch AFTER UPDATE ON sidecar.commits FOR EACH ROW WHEN (NEW.last <> OLD.last)
    EXECUTE FUNCTION watch.note_admission();
  CREATE TABLE watch.fencings (process text, started_at bigint, at bigint, silent bigint);
  CREATE FUNCTION watch.note_fencing() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO watch.fencings VALUES (NEW.process, NEW.started_at, extract(epoch FROM clock_timestamp()) * 1000,
      extract(epoch FROM clock_timestamp() - NEW.seen) * 1000);
    RETURN NULL;
  END $$;
  CREATE TRIGGER watch_fence AFTER UPDATE ON sidecar.replicas FOR EACH ROW WHEN (NEW.fenced AND NOT OLD.fenced)
    EXECUTE FUNCTION watch.note_fencing();
  CREATE FUNCTION watch.note_write() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO watch.writes VALUES (pg_current_xact_id(), TG_TABLE_NAME);
    RETURN NULL;
  END $$;
  ${GUARDED.map(
    (name) =>
      `CREATE TRIGGER watch AFTER INSERT OR UPDATE OR DELETE ON sidecar.${name} FOR EACH STATEMENT EXECUTE FUNCTION watch.note_write();`,
  ).join('\n')}
  CREATE FUNCTION watch.note_outcomes() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO watch.outcomes SELECT DISTINCT pg_current_xact_id(), l.shard, (SELECT owner FROM sidecar.leases WHERE shard = l.shard)
      FROM written w JOIN sidecar.lanes l ON l.id = w.lane WHERE w.status <> 0;
    RETURN NULL;
  END $$;
  CREATE TRIGGER watch_new AFTER INSERT ON sidecar.delivery_rows REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION watch.note_outcomes();
  CREATE TRIGGER watch_changed AFTER UPDATE ON sidecar.delivery_rows REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION watch.note_outcomes();`

/** Begins to note what is written. The tables must be there. */
export async function watchWrites({ books }: Pick<ReplicaWorld, 'books'>): Promise<void> {
  await books.run(WATCH)
}

/** I8, by what the database accepted. */
export async function admitted({ books, tally }: Pick<ReplicaWorld, 'books' | 'tally'>): Promise<Fault[]> {
  const count = async (table: string): Promise<number> =>
    (await books.run<{ count: number }>(`SELECT count(*) FROM watch.${table}`))[0]?.count ?? 0
  tally.add('writes examined', await count('writes'))
  tally.add('outcomes examined', await count('outcomes'))
  const unadmitted = await books.run<{ name: string; count: number }>(
    `SELECT name, count(*) FROM watch.writes w WHERE NOT EXISTS (SELECT 1 FROM watch.admitted a WHERE a.xid = w.xid) GROUP BY name`,
  )
  const late = await books.run<{ replica: string }>('SELECT replica FROM watch.admitted WHERE was_fenced')
  const foreign = await books.run<{ shard: number; owner: string | null; replica: string }>(
    `SELECT o.shard, o.owner, a.replica FROM watch.outcomes o JOIN watch.admitted a USING (xid)
     WHERE o.owner IS DISTINCT FROM a.replica`,
  )
  const messages = [
    ...unadmitted.map(({ name, count: times }) => `${times} writes of ${name} passed no fence`),
    ...late.map(({ replica }) => `${replica} wrote after it was fenced`),
    ...foreign.map(
      ({ shard, owner, replica }) =>
        `${replica} stored an outcome of shard ${shard}, which ${owner ?? 'no process'} has`,
    ),
  ]
  return messages.map((message) => ({ invariant: 'I8', message }))
}
