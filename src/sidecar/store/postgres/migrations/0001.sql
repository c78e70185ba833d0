-- The tables of src/sidecar/store/sqlite/migrations, with what several replicas need: leases, shards, and positions that
-- become visible in order. Texts that are compared have the collation "C": each server orders them by their bytes.

-- The processes. All leases of one are renewed together, on the database's clock. A row is fenced once another process took
-- its leases over.
CREATE TABLE sidecar.replicas (
  id               text COLLATE "C" PRIMARY KEY,       -- new with each start
  number           bigint GENERATED ALWAYS AS IDENTITY,
  name             text NOT NULL,
  version          text NOT NULL,
  started_at       bigint NOT NULL,
  seen             timestamptz NOT NULL DEFAULT clock_timestamp(),
  until            timestamptz NOT NULL,
  joined           boolean NOT NULL DEFAULT false,      -- takes shards
  fenced           boolean NOT NULL DEFAULT false,
  stream_connected boolean NOT NULL DEFAULT false
) WITH (fillfactor = 10);

-- The number of the last transaction that each process committed. A process whose COMMIT had no answer reads it.
-- PostgreSQL's own number of the transaction does not suffice: after a crash the server may give that number to another
-- transaction.
CREATE TABLE sidecar.commits (replica text COLLATE "C" PRIMARY KEY, last bigint NOT NULL) WITH (fillfactor = 10);

-- The owner of each shard; the shard -1 is the leader's. No row is deleted, and no epoch is given twice.
CREATE SEQUENCE sidecar.epochs AS bigint;
CREATE TABLE sidecar.leases (
  shard  smallint PRIMARY KEY,
  owner  text COLLATE "C",                     -- replicas.id; null: free
  epoch  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO sidecar.leases (shard) SELECT generate_series(-1, 63);

-- The last position given. Drawing from it locks the row until the commit: a reader never skips a position that commits later.
CREATE TABLE sidecar.positions (name text COLLATE "C" PRIMARY KEY, last bigint NOT NULL) WITH (fillfactor = 10);
INSERT INTO sidecar.positions VALUES ('facts', 0), ('held_frames', 0);

CREATE TABLE sidecar.facts (
  pos          bigint PRIMARY KEY,
  id           text COLLATE "C" NOT NULL UNIQUE,
  type         text COLLATE "C" NOT NULL,
  session_id   text COLLATE "C",
  turn_id      text COLLATE "C",
  at           bigint NOT NULL,                -- ms, wall clock
  family       text COLLATE "C" NOT NULL,
  seq          text COLLATE "C",
  body         text NOT NULL,
  subject      text COLLATE "C",
  seen_stream  bigint,
  seen_webhook bigint,
  seen_poll    bigint,
  checksum     bigint NOT NULL,
  wanted       int NOT NULL DEFAULT 0          -- one bit for the number of each handler whose delivery has no row at first
);
CREATE INDEX facts_subject ON sidecar.facts (subject, pos) WHERE subject IS NOT NULL;
-- The facts by the key of their lane.
CREATE INDEX facts_session ON sidecar.facts ((coalesce(session_id, '')), pos);

CREATE TABLE sidecar.handlers (
  number       int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name         text COLLATE "C" NOT NULL UNIQUE,
  paused_at    bigint,
  pause_reason text
);

-- Only `shard` and `handler`, which do not change, are indexed: an update of the others stays on its page.
CREATE TABLE sidecar.lanes (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  handler int NOT NULL,
  key     text COLLATE "C" NOT NULL,
  shard   smallint NOT NULL,
  pending bigint NOT NULL,
  due_at  bigint NOT NULL,                     -- ms, the store's clock
  fresh   bigint NOT NULL DEFAULT 0,           -- each pending delivery of a fact before this position has a row
  UNIQUE (handler, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);

-- Most deliveries are pending for seconds only: a delivery has no row before its first outcome, so that its row is written
-- once. It has a row earlier where the fact alone does not show its handlers: for an unordered handler, and at a replay.
CREATE TABLE sidecar.delivery_rows (
  fact_pos bigint NOT NULL,
  handler  int NOT NULL,
  lane     bigint NOT NULL,
  status   smallint NOT NULL,                  -- 0 pending, 1 delivered, 2 dead
  attempts int NOT NULL,
  cut      int NOT NULL DEFAULT 0,
  log      text NOT NULL,
  answer   text,
  PRIMARY KEY (fact_pos, handler)
) WITH (fillfactor = 90);
CREATE INDEX deliveries_pending ON sidecar.delivery_rows (lane, fact_pos) WHERE status = 0;
CREATE INDEX deliveries_dead ON sidecar.delivery_rows (handler, fact_pos) WHERE status = 2;

-- Pending deliveries without a row.
CREATE VIEW sidecar.fresh_deliveries AS
  SELECT f.pos AS fact_pos, l.handler, l.id AS lane
  FROM sidecar.lanes l JOIN sidecar.facts f ON coalesce(f.session_id, '') = l.key AND f.pos >= l.fresh
  WHERE l.pending > 0 AND l.handler <= 30 AND f.wanted >> l.handler & 1 = 1
    AND (SELECT d.status FROM sidecar.delivery_rows d WHERE d.fact_pos = f.pos AND d.handler = l.handler) IS NULL;

CREATE FUNCTION sidecar.first_fresh(lane sidecar.lanes, before bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT f.pos FROM sidecar.facts f
  WHERE coalesce(f.session_id, '') = lane.key AND f.pos >= lane.fresh AND f.pos < before
    AND lane.handler <= 30 AND f.wanted >> lane.handler & 1 = 1
    AND (SELECT d.status FROM sidecar.delivery_rows d WHERE d.fact_pos = f.pos AND d.handler = lane.handler) IS NULL
  ORDER BY f.pos LIMIT 1
$$;

CREATE VIEW sidecar.deliveries AS
  SELECT fact_pos, handler, lane, status, attempts, cut, log, answer FROM sidecar.delivery_rows
  UNION ALL SELECT fact_pos, handler, lane, 0::smallint, 0, 0, '', NULL FROM sidecar.fresh_deliveries;

CREATE TABLE sidecar.begun (
  fact_pos bigint NOT NULL,
  handler  int NOT NULL,
  at       bigint NOT NULL,
  shard    smallint NOT NULL,
  PRIMARY KEY (fact_pos, handler)
);

CREATE TABLE sidecar.calls (
  call_id     text COLLATE "C" PRIMARY KEY,
  session_id  text COLLATE "C" NOT NULL,
  turn_id     text COLLATE "C",
  name        text COLLATE "C" NOT NULL,
  state       text COLLATE "C" NOT NULL,
  action      text NOT NULL,
  attempts    int NOT NULL,
  uncertain   smallint NOT NULL,
  deferred    smallint NOT NULL,
  result_kind text,
  result_text text,
  posts       int NOT NULL,
  unsure      smallint NOT NULL,
  outcome     text,
  error       text,
  created_at  bigint,
  expires_at  bigint,
  received_at bigint NOT NULL,
  started_at  bigint,
  finished_at bigint,
  ended_at    bigint,
  due_at      bigint NOT NULL,
  shard       smallint NOT NULL
);
CREATE INDEX calls_session ON sidecar.calls (session_id);
CREATE INDEX calls_received ON sidecar.calls (received_at, call_id);
CREATE INDEX calls_ended ON sidecar.calls (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX calls_waiting ON sidecar.calls (name, due_at) WHERE ended_at IS NULL AND state = 'received';
CREATE INDEX calls_moving ON sidecar.calls (due_at) WHERE ended_at IS NULL AND state <> 'received';

CREATE TABLE sidecar.sessions (
  id         text COLLATE "C" PRIMARY KEY,
  status     text COLLATE "C" NOT NULL,
  updated_at bigint NOT NULL,
  raw        text NOT NULL,                    -- the JSON of the service, which PostgreSQL may refuse to parse: \u0000
  title      text,
  at_rest    smallint NOT NULL,
  revision   bigint NOT NULL,
  baseline   bigint NOT NULL,
  first_seen bigint NOT NULL,
  read_at    bigint NOT NULL,
  deleted_at bigint
);
CREATE INDEX sessions_status ON sidecar.sessions (status, first_seen, id) WHERE deleted_at IS NULL;
CREATE INDEX sessions_active ON sidecar.sessions (id) WHERE deleted_at IS NULL AND at_rest = 0;
CREATE INDEX sessions_seen ON sidecar.sessions (first_seen, id);
CREATE INDEX sessions_deleted ON sidecar.sessions (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE sidecar.turns (
  id             text COLLATE "C" PRIMARY KEY,
  session_id     text COLLATE "C" NOT NULL,
  created_at     bigint,
  raw            text,
  artifacts      text,                         -- their status
  final          smallint NOT NULL DEFAULT 0,
  settled        smallint NOT NULL DEFAULT 0,
  final_fact     smallint NOT NULL DEFAULT 0,
  ended_frame_at bigint,
  final_read_at  bigint                        -- ms, the store's clock
);
CREATE INDEX turns_session ON sidecar.turns (session_id, created_at);
CREATE INDEX turns_unsettled ON sidecar.turns (session_id, created_at) WHERE settled = 0;

CREATE TABLE sidecar.actions (
  call_id     text COLLATE "C" PRIMARY KEY,
  session_id  text COLLATE "C" NOT NULL,
  turn_id     text COLLATE "C",
  type        text COLLATE "C" NOT NULL,
  name        text COLLATE "C",                -- of the function
  raw         text NOT NULL,
  created_at  bigint,
  opened_at   bigint NOT NULL,
  resolved_at bigint
);
CREATE INDEX actions_open ON sidecar.actions (session_id) WHERE resolved_at IS NULL;
CREATE INDEX actions_resolved ON sidecar.actions (resolved_at) WHERE resolved_at IS NOT NULL;

CREATE TABLE sidecar.hints (
  session_id   text COLLATE "C" PRIMARY KEY,   -- '': requests a sweep
  shard        smallint NOT NULL,              -- -1: of the leader
  generation   bigint NOT NULL,                -- the upper half: replicas.number
  other_generation bigint NOT NULL DEFAULT 0,  -- the last one of another process than that of `generation`
  due_at       bigint NOT NULL,                -- ms, the store's clock
  scope        int NOT NULL,
  seen_stream  bigint,
  seen_webhook bigint,
  seen_poll    bigint,
  failures     int NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);

CREATE TABLE sidecar.sightings (
  subject text COLLATE "C" NOT NULL,
  channel text NOT NULL,
  at      bigint NOT NULL,
  PRIMARY KEY (subject, channel)
);

CREATE TABLE sidecar.checkpoints (name text COLLATE "C" PRIMARY KEY, value text) WITH (fillfactor = 50);

CREATE TABLE sidecar.subscriptions (
  id         text COLLATE "C" PRIMARY KEY,
  url        text NOT NULL,
  secret     text NOT NULL,
  created_at bigint NOT NULL,
  retired_at bigint
);

CREATE TABLE sidecar.quarantine (
  id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at     bigint NOT NULL,
  source text NOT NULL,
  reason text NOT NULL,
  bytes  text NOT NULL
);

CREATE TABLE sidecar.session_owners (
  session_id text COLLATE "C" PRIMARY KEY,
  owner      text NOT NULL,
  noted_at   bigint NOT NULL,
  adopted_at bigint,
  from_seq   text
);
CREATE INDEX session_owners_foreign ON sidecar.session_owners (session_id) WHERE owner = 'foreign';

CREATE TABLE sidecar.held_frames (
  pos        bigint PRIMARY KEY,
  session_id text COLLATE "C" NOT NULL,
  id         text COLLATE "C" NOT NULL UNIQUE,
  characters bigint NOT NULL,
  fact       text NOT NULL
);
CREATE INDEX held_frames_session ON sidecar.held_frames (session_id, pos);

-- Called first in each transaction that writes. Lock and check are two statements: the second sees what was committed while
-- the first waited. A takeover takes the same lock exclusively, so it waits for the transactions that were allowed before it.
-- Transactions that may add facts run one after the other, in all processes: no two of them wait for each other's rows.
CREATE FUNCTION sidecar.fence(me text, commit_number bigint, alone boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  over boolean;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('session-sidecar ' || me, 7));
  SELECT fenced INTO over FROM sidecar.replicas WHERE id = me;
  IF over IS DISTINCT FROM false THEN
    RAISE EXCEPTION 'another process has taken over what % owned', me USING ERRCODE = 'SC001';
  END IF;
  IF alone THEN
    PERFORM pg_advisory_xact_lock(7305262418);
  ELSE
    PERFORM pg_advisory_xact_lock_shared(7305262418);
  END IF;
  UPDATE sidecar.commits SET last = commit_number WHERE replica = me;
END $$;

-- Frees the leases of a process that stopped renewing them. Again two statements: a renewal may have been committed while the
-- first waited.
CREATE FUNCTION sidecar.take_over(dead text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  -- Checked first without the lock: the transactions of a live process would have to wait for it.
  IF NOT EXISTS (SELECT 1 FROM sidecar.replicas WHERE id = dead AND NOT fenced AND until < clock_timestamp()) THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('session-sidecar ' || dead, 7));
  UPDATE sidecar.replicas SET fenced = true WHERE id = dead AND NOT fenced AND until < clock_timestamp();
  IF FOUND THEN
    UPDATE sidecar.leases SET owner = NULL WHERE owner = dead;
  END IF;
END $$;

-- The clean end of a process.
CREATE FUNCTION sidecar.resign(me text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('session-sidecar ' || me, 7));
  DELETE FROM sidecar.replicas WHERE id = me AND NOT fenced;
  IF FOUND THEN
    UPDATE sidecar.leases SET owner = NULL WHERE owner = me;
    DELETE FROM sidecar.commits WHERE replica = me;
  END IF;
END $$;
