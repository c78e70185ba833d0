-- As before, and a transaction with a lower number than that of the last one is refused: its process has given it up because its
-- connection broke, and the server received it late.
CREATE OR REPLACE FUNCTION sidecar.fence(me text, commit_number bigint, alone boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  over boolean;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('session-sidecar ' || me, 7));
  SELECT fenced INTO over FROM sidecar.replicas WHERE id = me;
  IF over IS DISTINCT FROM false THEN
    RAISE EXCEPTION 'another process has taken over what % owned', me USING ERRCODE = 'SC001';
  END IF;
  IF alone THEN
    PERFORM pg_advisory_xact_lock(7305262418);
  ELSE
    PERFORM pg_advisory_xact_lock_shared(7305262418);
  END IF;
  UPDATE sidecar.commits SET last = commit_number WHERE replica = me AND last < commit_number;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'transaction % of % comes after a later one', commit_number, me USING ERRCODE = 'SC002';
  END IF;
END $$;
