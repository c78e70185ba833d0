-- With a scope: the owner of each session. Of a foreign session only the id is stored.
CREATE TABLE session_owners (
  session_id TEXT PRIMARY KEY,
  owner      TEXT NOT NULL,                   -- pending | ours | foreign | gone
  noted_at   INTEGER NOT NULL,                -- ms, our wall clock
  adopted_at INTEGER,                         -- ms, service clock: came into the scope after it had been outside
  from_seq   TEXT                             -- the stream's cursor then: earlier frames are not ours
) STRICT, WITHOUT ROWID;
CREATE INDEX session_owners_foreign ON session_owners (session_id) WHERE owner = 'foreign';
-- Persisted frames of sessions that were not read yet, in the order in which they came.
CREATE TABLE held_frames (
  pos        INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL,
  id         TEXT NOT NULL UNIQUE,            -- the fact's
  characters INTEGER NOT NULL,
  fact       TEXT NOT NULL                    -- JSON
) STRICT;
CREATE INDEX held_frames_session ON held_frames (session_id);
