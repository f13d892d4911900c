-- Who holds and who waits. Roles: h a holder, w a waiter; waiters in the order of service. Ages and remaining times in ms.
CREATE FUNCTION @schema@.state(p_names pg_catalog.bytea[])
    RETURNS TABLE (name pg_catalog.bytea, role pg_catalog.text, id pg_catalog.text, kind integer, weight integer, permits integer, label pg_catalog.text,
                   token bigint, age_ms bigint, left_ms bigint)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
  SELECT name, role, id, kind, weight, permits, label, token,
         -@schema@.ms_until(since) AS age_ms, @schema@.ms_until(ends) AS left_ms
  FROM (
    SELECT locks.name, 'h' AS role, locks.id, 0 /* exclusive */ AS kind, 1 AS weight, locks.permits, locks.label,
           locks.token, locks.granted_at AS since, locks.expires_at AS ends
      FROM @schema@.locks
      WHERE locks.name = ANY (p_names) AND locks.id IS NOT NULL AND locks.expires_at > pg_catalog.clock_timestamp()
    UNION ALL
    SELECT shares.name, 'h', shares.id, shares.kind, shares.weight, locks.permits, shares.label,
           shares.token, shares.granted_at, shares.expires_at
      FROM @schema@.shares JOIN @schema@.locks ON locks.name = shares.name
      WHERE shares.name = ANY (p_names) AND shares.expires_at > pg_catalog.clock_timestamp()
    UNION ALL
    SELECT waiters.name, 'w', waiters.id, waiters.kind, waiters.weight, locks.permits, waiters.label,
           waiters.ticket, waiters.enqueued_at, NULL
      FROM @schema@.waiters JOIN @schema@.locks ON locks.name = waiters.name
        JOIN @schema@.clients ON clients.client = waiters.client
      WHERE waiters.name = ANY (p_names) AND clients.alive_until > pg_catalog.clock_timestamp()
  ) everyone
  ORDER BY name, role, token;
$$;

-- The next names in use from p_from (itself counted only if p_inclusive) and before p_before (null: to the end), in byte order.
CREATE FUNCTION @schema@.names_from(p_from pg_catalog.bytea, p_inclusive boolean, p_before pg_catalog.bytea, p_count integer)
    RETURNS SETOF pg_catalog.bytea LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
  SELECT locks.name FROM @schema@.locks
    WHERE locks.name >= p_from AND (p_inclusive OR locks.name > p_from) AND (p_before IS NULL OR locks.name < p_before)
    ORDER BY locks.name LIMIT p_count;
$$;
