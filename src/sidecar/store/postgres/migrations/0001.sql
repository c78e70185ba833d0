-- The tables of src/sidecar/store/sqlite/migrations, with what several replicas need: leases, shards, and positions that
-- become visible in order. Texts that are compared have the collation "C": the order is that of their bytes, on each server.

-- The right to write. `until` is on the database's clock. A row is never deleted, so that an epoch is never given twice.
CREATE TABLE sidecar.leases (
  name   text COLLATE "C" PRIMARY KEY,         -- 'leader', 'shard:0' … 'shard:63'
  owner  text NOT NULL,
  epoch  bigint NOT NULL,
  until  timestamptz NOT NULL
);

-- The number of the last transaction that was committed under a lease: an owner whose COMMIT had no answer asks for it. The
-- number of PostgreSQL's own would not do: a server that crashes gives it again to another transaction.
CREATE TABLE sidecar.commits (lease text COLLATE "C" PRIMARY KEY, last bigint NOT NULL) WITH (fillfactor = 10);

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
-- By the key of their lanes.
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

-- Most deliveries end seconds after they began to be pending: a delivery has no row before its first outcome, so that its row
-- is written once. A row comes earlier where the fact alone does not say who wants it: for an unordered handler, and at a replay.
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
  session_id   text COLLATE "C" PRIMARY KEY,   -- '': the wish for a sweep
  shard        smallint NOT NULL,
  generation   bigint NOT NULL,
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

-- First in each transaction that writes. Lock and check are two statements: the second sees what was committed while the
-- first waited. A takeover takes the same lock alone, so it waits for the transactions that were allowed before it.
CREATE FUNCTION sidecar.fence(held_lease text, held bigint, commit_number bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  now_at bigint;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('session-sidecar ' || held_lease, 7));
  SELECT epoch INTO now_at FROM sidecar.leases WHERE name = held_lease;
  IF now_at IS DISTINCT FROM held THEN
    RAISE EXCEPTION 'the lease % has epoch %, not %', held_lease, now_at, held USING ERRCODE = 'SC001';
  END IF;
  UPDATE sidecar.commits SET last = commit_number WHERE lease = held_lease;
END $$;

-- Takes a lease that is free, is over, or is the owner's own. Returns its new epoch; null: another owner has it.
CREATE FUNCTION sidecar.acquire(wanted text, claimant text, ttl_ms bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  taken bigint;
BEGIN
  -- Without the lock, for which its transactions would wait in turn.
  IF EXISTS (SELECT 1 FROM sidecar.leases WHERE name = wanted AND until >= clock_timestamp()) THEN
    RETURN NULL;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('session-sidecar ' || wanted, 7));
  INSERT INTO sidecar.leases AS l VALUES (wanted, claimant, 1, clock_timestamp() + ttl_ms * interval '1 ms')
    ON CONFLICT (name) DO UPDATE SET owner = claimant, epoch = l.epoch + 1, until = clock_timestamp() + ttl_ms * interval '1 ms'
    WHERE l.until < clock_timestamp()
    RETURNING l.epoch INTO taken;
  INSERT INTO sidecar.commits VALUES (wanted, 0) ON CONFLICT DO NOTHING;
  RETURN taken;
END $$;
