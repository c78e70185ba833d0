-- Most deliveries end seconds after they began to be pending. A row for each was written twice, and so was its entry in the
-- index of pending ones. Now a delivery of one of the newest facts has no row before its first outcome: `wanted` says which
-- handlers selected the fact, one bit for each number. Those that stay pending get their rows behind, many at a time
-- (lanes.ts); the checkpoint says up to which position every delivery has a row.
ALTER TABLE facts ADD COLUMN wanted INTEGER;
ALTER TABLE deliveries RENAME TO delivery_rows;
INSERT OR REPLACE INTO checkpoints (name, value) SELECT 'delivery_rows', ifnull(max(pos), 0) FROM facts;
-- Pending deliveries without a row.
CREATE VIEW fresh_deliveries AS
  SELECT f.pos AS fact_pos, h.number AS handler, l.id AS lane
  FROM facts f CROSS JOIN handlers h CROSS JOIN lanes l
  WHERE f.pos > ifnull((SELECT CAST(value AS INTEGER) FROM checkpoints WHERE name = 'delivery_rows'), 0)
    AND f.wanted >> h.number & 1
    AND NOT EXISTS (SELECT 1 FROM delivery_rows d WHERE d.fact_pos = f.pos AND d.handler = h.number)
    AND l.handler = h.number AND l.key = coalesce(f.session_id, '');
CREATE VIEW deliveries AS
  SELECT fact_pos, handler, lane, status, attempts, log, answer, cut FROM delivery_rows
  UNION ALL SELECT fact_pos, handler, lane, 0, 0, '', NULL, 0 FROM fresh_deliveries;
