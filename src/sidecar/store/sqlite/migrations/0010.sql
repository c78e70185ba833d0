-- Attempts that are under way for long: the end of the last process interrupted those that a start finds here.
CREATE TABLE begun (
  fact_pos INTEGER NOT NULL,
  handler  INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  PRIMARY KEY (fact_pos, handler)
) STRICT, WITHOUT ROWID;
-- The number of interrupted attempts, which do not count against the retry policy.
ALTER TABLE deliveries ADD COLUMN cut INTEGER NOT NULL DEFAULT 0;
