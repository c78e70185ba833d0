-- Calls that wait for an answer of their app: each read of a session checks whether its calls are still required.
CREATE INDEX calls_deferred ON calls (session_id) WHERE deferred = 1 AND ended_at IS NULL;
