-- Who writes this store: one row, moved on by each commit, so that the log beside the file and the file can be told to
-- belong to each other, and so that a process that another one replaced can commit nothing more. The root of this table
-- is read from the bytes of both (wal.ts): the row keeps its five columns.
CREATE TABLE owner (
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  owner    TEXT NOT NULL,                     -- 32 hex digits, drawn at each start
  previous TEXT NOT NULL,                     -- the owner before; '' for the first
  epoch    INTEGER NOT NULL,                  -- one more at each start
  commits  INTEGER NOT NULL                   -- one more at each commit
) STRICT;
