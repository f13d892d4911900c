-- Who holds and who waits. Roles: h a holder, w a waiter; waiters in the order of service. Ages and remaining times in ms.
CREATE FUNCTION @schema@.state(p_names pg_catalog.bytea[])
    RETURNS TABLE (name pg_catalog.bytea, role pg_catalog.text, id pg_catalog.text, kind integer, weight integer, permits integer, label pg_catalog.text,
                   token bigint, age_ms double precision, left_ms double precision)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
  SELECT name, role, id, kind, weight, permits, label, token,
         -@schema@.ms_until(since) AS age_ms, @schema@.ms_until(ends) AS left_ms
  FROM (
    SELECT l.name, 'h' AS role, l.id, 0 AS kind, 1 AS weight, l.permits, l.label, l.token, l.granted_at AS since,
           l.expires_at AS ends
      FROM @schema@.locks l
      WHERE l.name = ANY (p_names) AND l.id IS NOT NULL AND l.expires_at > pg_catalog.clock_timestamp()
    UNION ALL
    SELECT s.name, 'h', s.id, s.kind, s.weight, l.permits, s.label, s.token, s.granted_at, s.expires_at
      FROM @schema@.shares s JOIN @schema@.locks l ON l.name = s.name
      WHERE s.name = ANY (p_names) AND s.expires_at > pg_catalog.clock_timestamp()
    UNION ALL
    SELECT w.name, 'w', w.id, w.kind, w.weight, l.permits, w.label, w.ticket, w.enqueued_at, NULL
      FROM @schema@.waiters w JOIN @schema@.locks l ON l.name = w.name JOIN @schema@.clients c ON c.client = w.client
      WHERE w.name = ANY (p_names) AND c.alive_until > pg_catalog.clock_timestamp()
  ) everyone
  ORDER BY name, role, token;
$$;

-- The next names in use from p_from (itself counted only if p_inclusive) and before p_before (null: to the end), in byte order.
CREATE FUNCTION @schema@.names_from(p_from pg_catalog.bytea, p_inclusive boolean, p_before pg_catalog.bytea, p_count integer)
    RETURNS SETOF pg_catalog.bytea LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
  SELECT l.name FROM @schema@.locks l
    WHERE l.name >= p_from AND (p_inclusive OR l.name > p_from) AND (p_before IS NULL OR l.name < p_before)
    ORDER BY l.name LIMIT p_count;
$$;
