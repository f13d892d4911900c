-- Clears what nobody asks for any more; does nothing if that was done in the last 30 s.
CREATE FUNCTION @schema@.sweep() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_name bytea;
BEGIN
  UPDATE @schema@.schema_version SET swept_at = clock_timestamp()
    WHERE swept_at < clock_timestamp() - interval '30 seconds';
  IF NOT FOUND THEN
    RETURN;
  END IF;
  FOR v_name IN
    SELECT l.name FROM @schema@.locks l WHERE l.id IS NULL OR l.expires_at <= clock_timestamp() ORDER BY l.name
  LOOP
    IF @schema@.enter(v_name) THEN
      PERFORM @schema@.serve(v_name, NULL);
    END IF;
  END LOOP;
  DELETE FROM @schema@.clients c WHERE c.alive_until < clock_timestamp() - interval '60 seconds'
    AND NOT EXISTS (SELECT 1 FROM @schema@.waiters w WHERE w.client = c.client);
END $$;
