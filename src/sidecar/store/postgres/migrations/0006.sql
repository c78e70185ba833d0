-- Each transaction with frames waited until no other process stored outcomes, and the other way round: with two replicas, this
-- was a tenth of the time. This function replaces sidecar.fence, which older versions call. `excludes`: 'writes' excludes all
-- other writes, 'lanes' those that add facts or lock lanes in any order, and 'nothing' none.
CREATE FUNCTION sidecar.admit(me text, commit_number bigint, excludes text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  over boolean;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('session-sidecar ' || me, 7));
  SELECT fenced INTO over FROM sidecar.replicas WHERE id = me;
  IF over IS DISTINCT FROM false THEN
    RAISE EXCEPTION 'another process has taken over what % owned', me USING ERRCODE = 'SC001';
  END IF;
  IF excludes = 'writes' THEN
    PERFORM pg_advisory_xact_lock(7305262418);
  ELSE
    PERFORM pg_advisory_xact_lock_shared(7305262418);
    IF excludes = 'lanes' THEN
      PERFORM pg_advisory_xact_lock(7305262420);
    END IF;
  END IF;
  UPDATE sidecar.commits SET last = commit_number WHERE replica = me AND last < commit_number;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'transaction % of % comes after a later one', commit_number, me USING ERRCODE = 'SC002';
  END IF;
END $$;

CREATE OR REPLACE FUNCTION sidecar.fence(me text, commit_number bigint, alone boolean) RETURNS void LANGUAGE sql AS $$
  SELECT sidecar.admit(me, commit_number, CASE WHEN alone THEN 'writes' ELSE 'nothing' END)
$$;
