-- A session's turns that are still to settle, however many have settled before them.
CREATE INDEX turns_unsettled ON turns (session_id, created_at) WHERE settled = 0;
