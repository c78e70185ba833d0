-- What a process reports about itself: its channels, handlers and last minutes, JSON of an object. null: written by a version that
-- reports nothing, or before its first report.
ALTER TABLE sidecar.replicas ADD COLUMN report text COLLATE "C";
