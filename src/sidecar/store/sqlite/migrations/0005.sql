-- Calls that wait for their app, of which each reading of their session asks whether they are still required.
CREATE INDEX calls_deferred ON calls (session_id) WHERE deferred = 1 AND ended_at IS NULL;
