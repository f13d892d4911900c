-- Called when a hand-off lapsed because its client did not confirm it. If that client also sent no check for 1.5 s (a check
-- keeps it alive for 3 s), its other waiters here are removed too, instead of taking one claim time each.
CREATE FUNCTION @schema@.pass_over(p_name pg_catalog.bytea, p_client pg_catalog.text) RETURNS pg_catalog.void LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM @schema@.waiters w USING @schema@.clients c
    WHERE w.name = p_name AND w.client = p_client AND c.client = p_client
      AND c.alive_until < pg_catalog.clock_timestamp() + interval '1500 milliseconds';
$$;
