-- Most deliveries are pending for seconds only. A row for each would be written twice, and its index entry too. So a delivery
-- of one of the newest facts has no row before its first outcome: `wanted` has one bit for the number of each handler that
-- selected the fact. Deliveries that stay pending get their rows later, many at a time (lanes.ts). Up to the position in the
-- checkpoint every delivery has a row.
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
