-- The first 1 KiB of the last failed response of the handler.
ALTER TABLE deliveries ADD COLUMN answer TEXT;

-- The number of sessions by status: counting them at each scrape would take longer with each session.
CREATE TABLE session_counts (status TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO session_counts SELECT status, count(*) FROM sessions WHERE deleted_at IS NULL GROUP BY status;
CREATE TRIGGER session_added AFTER INSERT ON sessions WHEN new.deleted_at IS NULL BEGIN
  INSERT INTO session_counts VALUES (new.status, 1) ON CONFLICT (status) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER session_removed AFTER DELETE ON sessions WHEN old.deleted_at IS NULL BEGIN
  UPDATE session_counts SET count = count - 1 WHERE status = old.status;
END;
CREATE TRIGGER session_changed AFTER UPDATE OF status, deleted_at ON sessions
  WHEN new.status <> old.status OR new.deleted_at IS NOT old.deleted_at BEGIN
  UPDATE session_counts SET count = count - 1 WHERE status = old.status AND old.deleted_at IS NULL;
  INSERT INTO session_counts SELECT new.status, 1 WHERE new.deleted_at IS NULL
    ON CONFLICT (status) DO UPDATE SET count = count + 1;
END;
