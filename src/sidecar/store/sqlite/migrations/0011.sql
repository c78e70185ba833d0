-- The facts of a session in order. In a burst each commit has facts of many sessions: an index on facts would write a page
-- for each session. So entries are added later, many at a time (log.ts), up to the position in the checkpoint.
CREATE TABLE session_facts (
  session_id TEXT NOT NULL,
  pos        INTEGER NOT NULL,
  PRIMARY KEY (session_id, pos)
) STRICT, WITHOUT ROWID;
INSERT INTO session_facts SELECT session_id, rowid FROM facts WHERE session_id IS NOT NULL ORDER BY session_id, rowid;
INSERT OR REPLACE INTO checkpoints (name, value) SELECT 'session_facts', ifnull(max(pos), 0) FROM facts;
DROP INDEX facts_session;
