-- Each transaction with frames waited until no other process stored outcomes, and the other way round. With two replicas, this
-- was a tenth of the time. As sidecar.fence, which older versions call, with one more lock: `excludes` is what other processes
-- must not do at the same time: 'writes' for all writes, 'facts', or 'nothing'.
CREATE FUNCTION sidecar.admit(me text, commit_number bigint, excludes text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM sidecar.fence(me, commit_number, excludes = 'writes');
  IF excludes = 'facts' THEN
    PERFORM pg_advisory_xact_lock(7305262420);
  END IF;
END $$;
