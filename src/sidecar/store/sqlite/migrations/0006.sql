-- Housekeeping finds the rows that ended, without reading the others.
CREATE INDEX calls_ended ON calls (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX actions_resolved ON actions (resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX sessions_deleted ON sessions (deleted_at) WHERE deleted_at IS NOT NULL;
DELETE FROM checkpoints WHERE name = 'prune_pos';
