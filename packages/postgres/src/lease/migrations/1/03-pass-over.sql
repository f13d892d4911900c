-- A hand-over lapsed unheard. If its client has not been heard of otherwise for 1.5 s (it is alive for 3 s after each
-- check), its other waiters here are passed over too, rather than given a claim time each.
CREATE FUNCTION @schema@.pass_over(p_name bytea, p_client text) RETURNS void LANGUAGE sql AS $$
  DELETE FROM @schema@.waiters w USING @schema@.clients c
    WHERE w.name = p_name AND w.client = p_client AND c.client = p_client
      AND c.alive_until < clock_timestamp() + interval '1500 milliseconds';
$$;
