-- The heartbeat of a client and the check of its waiters. Serves those of the resources that became free unnoticed (a hold
-- expired, a waiter died). A hand-off to one of these acquisitions lasts for at least the claim time from now, and not for
-- its ttl: the client may have died since it sent this.
-- Reply: the ms until the next hold of these resources expires (-1: none), then for every acquisition that does not wait a
-- line "h ID TOKEN MS" or "m ID" (neither holds nor waits), and after an empty line the hand-offs of `serve`.
-- p_all: p_ids are all acquisitions that the client waits for. Its other waiters are removed: their enqueue arrived after
-- their abandon.
CREATE FUNCTION @schema@.check_waiters(p_client pg_catalog.text, p_names pg_catalog.bytea[], p_ids pg_catalog.text[], p_ttls double precision[], p_all boolean)
    RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_item record;
  v_hold text;
  v_lines text := '';
  v_served text := '';
  v_next timestamptz;
BEGIN
  DELETE FROM @schema@.waiters w WHERE p_all AND w.client = p_client
    AND w.enqueued_at < pg_catalog.clock_timestamp() - interval '10 seconds'
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(p_ids) AS i(id) WHERE i.id = w.id);
  -- Somebody deleted the row of the resource by hand: its waiters are in no queue any more, and attempt again.
  DELETE FROM @schema@.waiters w WHERE w.client = p_client
    AND NOT EXISTS (SELECT 1 FROM @schema@.locks l WHERE l.name = w.name AND l.queued);
  FOR v_item IN
    SELECT l.name, NULL AS id, 0 AS ttl_ms FROM @schema@.locks l
      WHERE l.name = ANY (p_names) AND l.queued AND (l.id IS NULL OR l.expires_at <= pg_catalog.clock_timestamp())
    UNION ALL
    SELECT i.name, i.id, i.ttl_ms FROM unnest(p_names, p_ids, p_ttls) AS i(name, id, ttl_ms)
      WHERE NOT EXISTS (SELECT 1 FROM @schema@.waiters w WHERE w.client = p_client AND w.id = i.id)
    ORDER BY 1, 2 NULLS FIRST
  LOOP
    IF v_item.id IS NULL THEN
      IF @schema@.enter(v_item.name) THEN
        v_served := v_served || @schema@.serve(v_item.name, p_client);
      END IF;
      CONTINUE;
    END IF;
    v_hold := @schema@.extend(v_item.name, v_item.id, least(v_item.ttl_ms, @schema@.claim_ms()), false);
    v_lines := v_lines || E'\n' || coalesce('h ' || v_item.id || ' ' || v_hold, 'm ' || v_item.id);
  END LOOP;
  SELECT pg_catalog.min(ends) INTO v_next FROM (
    SELECT l.expires_at AS ends FROM @schema@.locks l WHERE l.name = ANY (p_names) AND l.id IS NOT NULL
    UNION ALL
    SELECT s.expires_at FROM @schema@.shares s WHERE s.name = ANY (p_names)
  ) holds;
  PERFORM @schema@.keep_alive(p_client);
  RETURN coalesce(@schema@.ms_until(v_next), -1) || v_lines || E'\n' || v_served;
END $$;
