-- A replica whose configuration differs from the others' is reported. null: written by a version that did not record it.
ALTER TABLE sidecar.replicas ADD COLUMN configuration text COLLATE "C";
