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
  DELETE FROM @schema@.waiters w WHERE w.client = p_client
    AND w.enqueued_at < pg_catalog.clock_timestamp() - interval '10 seconds'
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(p_ids) AS i(id) WHERE i.id = w.id);
  -- Somebody deleted the row of the resource by hand: its waiters are in no queue any more, and attempt again.
  DELETE FROM @schema@.waiters w WHERE w.client = p_client
    AND NOT EXISTS (SELECT 1 FROM @schema@.locks l WHERE l.name = w.name AND l.queued);
  -- One statement, with one snapshot: a hand-off under way counts either as a waiter or as a hold.
  SELECT pg_catalog.string_agg(
      E'\n' || coalesce('h ' || i.id || ' ' || h.token || ' ' || @schema@.ms_until(h.expires_at), 'm ' || i.id), '')
    INTO v_lines
    FROM unnest(p_names, p_ids) AS i(name, id) LEFT JOIN LATERAL (
      SELECT l.token, l.expires_at FROM @schema@.locks l WHERE l.name = i.name AND l.id = i.id
      UNION ALL
      SELECT s.token, s.expires_at FROM @schema@.shares s WHERE s.name = i.name AND s.id = i.id
    ) h ON h.expires_at > pg_catalog.clock_timestamp()
    WHERE NOT EXISTS (SELECT 1 FROM @schema@.waiters w WHERE w.client = p_client AND w.id = i.id);
  FOR v_name IN
    SELECT l.name FROM @schema@.locks l
      WHERE l.name = ANY (p_names) AND l.queued AND (l.id IS NULL OR l.expires_at <= pg_catalog.clock_timestamp())
      ORDER BY l.name
  LOOP
    IF @schema@.enter(v_name) THEN
      v_served := v_served || @schema@.serve(v_name, p_client);
    END IF;
  END LOOP;
  SELECT pg_catalog.min(ends) INTO v_next FROM (
    SELECT l.expires_at AS ends FROM @schema@.locks l WHERE l.name = ANY (p_names) AND l.id IS NOT NULL
    UNION ALL
    SELECT s.expires_at FROM @schema@.shares s WHERE s.name = ANY (p_names)
  ) holds;
  INSERT INTO @schema@.clients (client, alive_until, listener, server_start)
    VALUES (p_client, pg_catalog.clock_timestamp() + interval '3 seconds', p_listener, pg_catalog.pg_postmaster_start_time())
    ON CONFLICT (client) DO UPDATE
      SET alive_until = excluded.alive_until, listener = excluded.listener, server_start = excluded.server_start;
  RETURN coalesce(@schema@.ms_until(v_next), -1) || coalesce(v_lines, '') || E'\n' || v_served;
END $$;
