-- The timeline of one session: its facts in order (the row's position comes with the index).
CREATE INDEX facts_session ON facts (session_id) WHERE session_id IS NOT NULL;
