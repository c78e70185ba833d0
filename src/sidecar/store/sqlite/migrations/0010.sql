-- Attempts that are under way for long: what a start finds here was cut by the end of the last process.
CREATE TABLE begun (
  fact_pos INTEGER NOT NULL,
  handler  INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  PRIMARY KEY (fact_pos, handler)
) STRICT, WITHOUT ROWID;
-- Those that were cut, beside those that count against the retry policy.
ALTER TABLE deliveries ADD COLUMN cut INTEGER NOT NULL DEFAULT 0;
