-- If many calls wait for a slow tool, the calls of other tools and the results to post are still found at once.
CREATE INDEX calls_waiting ON calls (name, due_at) WHERE ended_at IS NULL AND state = 'received';
CREATE INDEX calls_moving ON calls (due_at) WHERE ended_at IS NULL AND state <> 'received';
