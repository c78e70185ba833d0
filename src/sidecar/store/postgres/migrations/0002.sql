-- A replica whose configuration differs from the others' is reported. null: written by a version that did not record it.
ALTER TABLE sidecar.replicas ADD COLUMN configuration text COLLATE "C";

-- The operating system's name of the process. A process that starts finds out with it whether an earlier one on its
-- machine is gone. null: the system gives no such name.
ALTER TABLE sidecar.replicas ADD COLUMN process text COLLATE "C";
