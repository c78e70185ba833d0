-- Each transaction with frames waited until no other process stored outcomes, and the other way round: with two replicas, this
-- was a tenth of the time. This function is called in place of sidecar.fence, which older versions call. `excludes`: 'writes'
-- excludes all other writes, 'lanes' those that add facts or lock lanes in any order, and 'nothing' none.
CREATE FUNCTION sidecar.admit(me text, commit_number bigint, excludes text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM sidecar.fence(me, commit_number, excludes = 'writes');
  IF excludes = 'lanes' THEN
    PERFORM pg_advisory_xact_lock(7305262420);
  END IF;
END $$;
