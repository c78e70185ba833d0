-- A process is fenced if it has not renewed its leases since `renewal`, whatever the clock of the database shows: an administrator
-- may have set it back. Older versions go on with the function that compares times.
CREATE FUNCTION sidecar.take_over(dead text, renewal numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  -- Checked first without the locks: the transactions of a live process would have to wait for them.
  IF NOT EXISTS (SELECT 1 FROM sidecar.replicas WHERE id = dead AND NOT fenced AND extract(epoch FROM seen) = renewal) THEN
    RETURN;
  END IF;
  -- A transaction that was admitted before migration 8 may be under way.
  PERFORM pg_advisory_xact_lock(hashtextextended('session-sidecar ' || dead, 7));
  PERFORM 1 FROM sidecar.commits WHERE replica = dead FOR UPDATE;
  UPDATE sidecar.replicas SET fenced = true WHERE id = dead AND NOT fenced AND extract(epoch FROM seen) = renewal;
  IF FOUND THEN
    UPDATE sidecar.leases SET owner = NULL WHERE owner = dead;
  END IF;
END $$;
