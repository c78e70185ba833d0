-- Facts: the log. Positions are never used twice, also after pruning.
CREATE TABLE facts (
  pos          INTEGER PRIMARY KEY AUTOINCREMENT,
  id           TEXT NOT NULL UNIQUE,          -- made from the natural key: the dedupe
  type         TEXT NOT NULL,
  session_id   TEXT,
  turn_id      TEXT,
  at           INTEGER NOT NULL,              -- ms, our wall clock
  family       TEXT NOT NULL,                 -- state | transcript
  seq          TEXT,                          -- digits as given; may exceed 2^53
  body         TEXT NOT NULL,                 -- as received (transcript) or as read (state)
  subject      TEXT,                          -- joins state facts to the hints about them
  seen_stream  INTEGER,
  seen_webhook INTEGER,
  seen_poll    INTEGER,
  checksum     INTEGER NOT NULL               -- crc32 of id, type, session and body
) STRICT;
CREATE INDEX facts_subject ON facts (subject, pos) WHERE subject IS NOT NULL;

CREATE TABLE handlers (
  number       INTEGER PRIMARY KEY,
  name         TEXT NOT NULL UNIQUE,
  paused_at    INTEGER,
  pause_reason TEXT
) STRICT;

-- A lane is the unit of order. due_at is steady time in ms: nothing in the lane is tried before that time.
CREATE TABLE lanes (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  handler INTEGER NOT NULL,
  key     TEXT NOT NULL,
  pending INTEGER NOT NULL,
  due_at  INTEGER NOT NULL,
  UNIQUE (handler, key)
) STRICT;
CREATE INDEX lanes_due ON lanes (handler, due_at) WHERE pending > 0;

CREATE TABLE deliveries (
  fact_pos INTEGER NOT NULL,
  handler  INTEGER NOT NULL,
  lane     INTEGER NOT NULL,
  status   INTEGER NOT NULL,                  -- 0 pending, 1 delivered, 2 dead
  attempts INTEGER NOT NULL,                  -- those that count against the retry policy
  log      TEXT NOT NULL,                     -- attempts as JSON objects joined by commas
  PRIMARY KEY (fact_pos, handler)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_pending ON deliveries (lane, fact_pos) WHERE status = 0;
CREATE INDEX deliveries_dead ON deliveries (handler, fact_pos) WHERE status = 2;

CREATE TABLE calls (
  call_id     TEXT PRIMARY KEY,
  session_id  TEXT NOT NULL,
  turn_id     TEXT,
  name        TEXT NOT NULL,
  state       TEXT NOT NULL,
  action      TEXT NOT NULL,
  attempts    INTEGER NOT NULL,
  uncertain   INTEGER NOT NULL,
  deferred    INTEGER NOT NULL,
  result_kind TEXT,
  result_text TEXT,
  posts       INTEGER NOT NULL,
  unsure      INTEGER NOT NULL,
  outcome     TEXT,
  error       TEXT,
  created_at  INTEGER,
  expires_at  INTEGER,
  received_at INTEGER NOT NULL,
  started_at  INTEGER,
  finished_at INTEGER,
  ended_at    INTEGER,
  due_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX calls_open ON calls (due_at) WHERE ended_at IS NULL;
CREATE INDEX calls_session ON calls (session_id);
CREATE INDEX calls_received ON calls (received_at);

CREATE TABLE sessions (
  id          TEXT PRIMARY KEY,
  status      TEXT NOT NULL,
  updated_at  INTEGER NOT NULL,               -- service clock
  raw         TEXT NOT NULL,
  at_rest     INTEGER NOT NULL,
  revision    INTEGER NOT NULL,
  baseline    INTEGER NOT NULL,               -- service clock: settled turns up to then make no facts
  first_seen  INTEGER NOT NULL,
  read_at     INTEGER NOT NULL,
  deleted_at  INTEGER
) STRICT;
CREATE INDEX sessions_status ON sessions (status, first_seen, id) WHERE deleted_at IS NULL;
CREATE INDEX sessions_active ON sessions (id) WHERE deleted_at IS NULL AND at_rest = 0;
CREATE INDEX sessions_seen ON sessions (first_seen);

CREATE TABLE turns (
  id             TEXT PRIMARY KEY,
  session_id     TEXT NOT NULL,
  created_at     INTEGER,
  raw            TEXT,                        -- null: only its turn.ended frame was seen
  final          INTEGER NOT NULL DEFAULT 0,
  settled        INTEGER NOT NULL DEFAULT 0,
  final_fact     INTEGER NOT NULL DEFAULT 0,
  ended_frame_at INTEGER,
  final_read_at  INTEGER
) STRICT;
CREATE INDEX turns_session ON turns (session_id, created_at);

CREATE TABLE actions (
  call_id     TEXT PRIMARY KEY,
  session_id  TEXT NOT NULL,
  type        TEXT NOT NULL,
  raw         TEXT NOT NULL,
  created_at  INTEGER,
  opened_at   INTEGER NOT NULL,
  resolved_at INTEGER
) STRICT;
CREATE INDEX actions_open ON actions (session_id) WHERE resolved_at IS NULL;
CREATE INDEX actions_session ON actions (session_id);

-- Sessions to read: one row each, for any number of hints; '' requests a sweep.
CREATE TABLE hints (
  session_id   TEXT PRIMARY KEY,
  generation   INTEGER NOT NULL,
  due_at       INTEGER NOT NULL,              -- steady ms
  scope        INTEGER NOT NULL,              -- bits: 1 session, 2 turns
  seen_stream  INTEGER,
  seen_webhook INTEGER,
  seen_poll    INTEGER,
  failures     INTEGER NOT NULL
) STRICT;
CREATE INDEX hints_due ON hints (due_at);

-- What a channel announced before the fact existed.
CREATE TABLE sightings (
  subject TEXT NOT NULL,
  channel TEXT NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (subject, channel)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (name TEXT PRIMARY KEY, value TEXT) STRICT;

CREATE TABLE subscriptions (
  id         TEXT PRIMARY KEY,
  url        TEXT NOT NULL,
  secret     TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  retired_at INTEGER
) STRICT;

CREATE TABLE quarantine (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  at     INTEGER NOT NULL,
  source TEXT NOT NULL,
  reason TEXT NOT NULL,
  bytes  TEXT NOT NULL
) STRICT;
