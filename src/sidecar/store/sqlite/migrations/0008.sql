-- The process that writes this store: one row, updated by each commit. It shows whether the WAL beside the file belongs
-- to the file, and it stops a process that was replaced from committing. The row keeps its five columns, because wal.ts
-- reads it from the bytes of the file and of the WAL.
CREATE TABLE owner (
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  owner    TEXT NOT NULL,                     -- 32 hex digits, drawn at each start
  previous TEXT NOT NULL,                     -- the owner before; '' for the first
  epoch    INTEGER NOT NULL,                  -- one more at each start
  commits  INTEGER NOT NULL                   -- one more at each commit
) STRICT;
