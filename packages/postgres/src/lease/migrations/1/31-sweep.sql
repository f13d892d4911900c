-- Removes expired holds, unused resources and dead clients that nobody asks for; does nothing if it ran in the last 30 s.
CREATE FUNCTION @schema@.sweep() RETURNS pg_catalog.void LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_name bytea;
BEGIN
  UPDATE @schema@.schema_version SET swept_at = pg_catalog.clock_timestamp()
    WHERE swept_at < pg_catalog.clock_timestamp() - interval '30 seconds';
  IF NOT FOUND THEN
    RETURN;
  END IF;
  FOR v_name IN
    SELECT locks.name FROM @schema@.locks
      WHERE locks.id IS NULL OR locks.expires_at <= pg_catalog.clock_timestamp() ORDER BY locks.name
  LOOP
    IF @schema@.enter(v_name) THEN
      PERFORM @schema@.serve(v_name, NULL, NULL);
    END IF;
  END LOOP;
  DELETE FROM @schema@.clients WHERE clients.alive_until < pg_catalog.clock_timestamp() - interval '60 seconds'
    AND NOT EXISTS (SELECT 1 FROM @schema@.waiters WHERE waiters.client = clients.client)
    AND (clients.listener IS NULL OR @schema@.has_ended(clients.listener));
END $$;
