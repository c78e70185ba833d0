-- However many calls wait for a slow tool, those of another are found at once, and so are results to post.
CREATE INDEX calls_waiting ON calls (name, due_at) WHERE ended_at IS NULL AND state = 'received';
CREATE INDEX calls_moving ON calls (due_at) WHERE ended_at IS NULL AND state <> 'received';
