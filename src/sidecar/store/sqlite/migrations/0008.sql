-- The process that writes this store: one row, updated by each commit. It shows whether the log beside the file belongs
-- to the file, and it stops a process that was replaced from committing. The root of this table is read from the bytes
-- of both (wal.ts): the row keeps its five columns.
CREATE TABLE owner (
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  owner    TEXT NOT NULL,                     -- 32 hex digits, drawn at each start
  previous TEXT NOT NULL,                     -- the owner before; '' for the first
  epoch    INTEGER NOT NULL,                  -- one more at each start
  commits  INTEGER NOT NULL                   -- one more at each commit
) STRICT;
