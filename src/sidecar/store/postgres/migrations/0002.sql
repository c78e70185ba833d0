-- A replica whose configuration differs from the others' is reported. null: written by a version that did not record it.
ALTER TABLE sidecar.replicas ADD COLUMN configuration text COLLATE "C";

-- A process that starts finds out with this whether an earlier one on its machine is gone. null: its system does not say.
ALTER TABLE sidecar.replicas ADD COLUMN process text COLLATE "C";
