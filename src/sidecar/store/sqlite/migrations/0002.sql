-- Finds the turns of a session that are not settled, without reading its settled turns.
CREATE INDEX turns_unsettled ON turns (session_id, created_at) WHERE settled = 0;
