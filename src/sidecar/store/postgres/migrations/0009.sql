-- A process looked at all its work once a second if another one had written anything, such as outcomes. `noted` is the number
-- of the last transaction that may concern others, which a notification reports as well. It is null in a row of an older
-- version, whose transactions may all concern others.
ALTER TABLE sidecar.commits ADD COLUMN noted bigint;

CREATE FUNCTION sidecar.admit(me text, commit_number bigint, excludes text, concerns_others boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  locked text;
BEGIN
  UPDATE sidecar.commits SET last = commit_number, noted = CASE WHEN concerns_others THEN commit_number ELSE noted END
    WHERE replica = me AND last < commit_number AND NOT fenced;
  IF NOT FOUND THEN
    IF EXISTS (SELECT 1 FROM sidecar.commits WHERE replica = me AND NOT fenced) THEN
      RAISE EXCEPTION 'transaction % of % comes after a later one', commit_number, me USING ERRCODE = 'SC002';
    END IF;
    RAISE EXCEPTION 'another process has taken over what % owned', me USING ERRCODE = 'SC001';
  END IF;
  IF excludes = 'lanes' THEN
    locked := pg_advisory_xact_lock(7305262420);
  ELSIF excludes = 'writes' THEN
    locked := pg_advisory_xact_lock(7305262418);
    locked := pg_advisory_xact_lock(7305262420);
  ELSE
    locked := pg_advisory_xact_lock_shared(7305262418);
  END IF;
END $$;

-- Older versions call this one, and store a frame only if it is not null: in LANGUAGE sql it would be.
CREATE OR REPLACE FUNCTION sidecar.admit(me text, commit_number bigint, excludes text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM sidecar.admit(me, commit_number, excludes, true);
END $$;
