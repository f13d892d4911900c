-- The heartbeat of a client and the check of its waiters, which are all that it has: others are removed, since their enqueue
-- arrived after their abandon. Serves those of the resources that became free unnoticed (a hold expired, a waiter died), or
-- that are free because this client does not listen.
-- p_listener: the key of the advisory lock that the session of its listener holds; null: the client does not listen.
-- Reply: the ms until the next hold of these resources expires (-1: none), then for every acquisition that did not wait a
-- line "h ID TOKEN MS" (what is left of its hold) or "m ID" (neither holds nor waits), and after an empty line the hand-offs
-- of `serve`.
CREATE FUNCTION @schema@.check_waiters(p_client pg_catalog.text, p_names pg_catalog.bytea[], p_ids pg_catalog.text[], p_listener bigint)
    RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_name bytea;
  v_lines text;
  v_served text := '';
  v_next timestamptz;
BEGIN
  DELETE FROM @schema@.waiters WHERE waiters.client = p_client
    AND waiters.enqueued_at < pg_catalog.clock_timestamp() - interval '10 seconds'
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(p_ids) AS item(id) WHERE item.id = waiters.id);
  -- Somebody deleted the row of the resource by hand: its waiters are in no queue any more, and attempt again.
  DELETE FROM @schema@.waiters WHERE waiters.client = p_client
    AND NOT EXISTS (SELECT 1 FROM @schema@.locks WHERE locks.name = waiters.name AND locks.queued);
  -- One statement, with one snapshot: a hand-off under way counts either as a waiter or as a hold.
  SELECT pg_catalog.string_agg(
      E'\n' || coalesce('h ' || item.id || ' ' || hold.token || ' ' || @schema@.ms_until(hold.expires_at),
                       'm ' || item.id), '')
    INTO v_lines
    FROM unnest(p_names, p_ids) AS item(name, id) LEFT JOIN LATERAL (
      SELECT locks.token, locks.expires_at FROM @schema@.locks WHERE locks.name = item.name AND locks.id = item.id
      UNION ALL
      SELECT shares.token, shares.expires_at FROM @schema@.shares WHERE shares.name = item.name AND shares.id = item.id
    ) hold ON hold.expires_at > pg_catalog.clock_timestamp()
    WHERE NOT EXISTS (SELECT 1 FROM @schema@.waiters WHERE waiters.client = p_client AND waiters.id = item.id);
  FOR v_name IN
    SELECT locks.name FROM @schema@.locks
      WHERE locks.name = ANY (p_names) AND locks.queued
        AND (locks.id IS NULL OR locks.expires_at <= pg_catalog.clock_timestamp())
      ORDER BY locks.name
  LOOP
    IF @schema@.enter(v_name) THEN
      v_served := v_served || @schema@.serve(v_name, p_client, NULL);
    END IF;
  END LOOP;
  SELECT pg_catalog.min(ends) INTO v_next FROM (
    SELECT locks.expires_at AS ends FROM @schema@.locks WHERE locks.name = ANY (p_names) AND locks.id IS NOT NULL
    UNION ALL
    SELECT shares.expires_at FROM @schema@.shares WHERE shares.name = ANY (p_names)
  ) holds;
  INSERT INTO @schema@.clients (client, alive_until, listener, server_start)
    VALUES (p_client, pg_catalog.clock_timestamp() + interval '3 seconds', p_listener, pg_catalog.pg_postmaster_start_time())
    ON CONFLICT (client) DO UPDATE
      SET alive_until = excluded.alive_until, listener = excluded.listener, server_start = excluded.server_start;
  RETURN coalesce(@schema@.ms_until(v_next), -1) || coalesce(v_lines, '') || E'\n' || v_served;
END $$;
