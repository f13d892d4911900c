-- Parts of `acquire`, in PL/pgSQL: the body of an SQL function that is not inlined is planned anew at each call, for up to 0.2 ms.

-- Draws another token for an exclusive hold that this statement has inserted.
CREATE FUNCTION @schema@.draw_again(p_name pg_catalog.bytea) RETURNS bigint LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_token bigint;
BEGIN
  UPDATE @schema@.locks SET token = pg_catalog.nextval('@schema@.numbers'::pg_catalog.regclass)
    WHERE locks.name = p_name RETURNING locks.token INTO v_token;
  RETURN v_token;
END $$;

-- Whether p_most waiters or more are in the queue of a locked resource. Those of clients that died do not count, and are removed: see
-- `serve`.
CREATE FUNCTION @schema@.is_full(p_name pg_catalog.bytea, p_client pg_catalog.text, p_most integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_moment CONSTANT timestamptz := pg_catalog.clock_timestamp();
BEGIN
  FOR v_round IN 1 .. 2 LOOP
    IF (SELECT pg_catalog.count(*) FROM (SELECT FROM @schema@.waiters WHERE waiters.name = p_name LIMIT p_most) others) < p_most THEN
      RETURN false;
    END IF;
    EXIT WHEN v_round = 2;
    DELETE FROM @schema@.waiters WHERE waiters.name = p_name AND waiters.client IN (
      SELECT others.client FROM (SELECT DISTINCT waiters.client FROM @schema@.waiters WHERE waiters.name = p_name) others
        LEFT JOIN @schema@.clients ON clients.client = others.client
        WHERE others.client <> p_client
          AND @schema@.is_dead(clients.alive_until, clients.listener, clients.server_start, v_moment));
  END LOOP;
  RETURN true;
END $$;

-- Grants a shared hold or a permit; gives its token.
CREATE FUNCTION @schema@.add_share(p_name pg_catalog.bytea, p_id pg_catalog.text, p_kind smallint, p_weight integer,
    p_ttl_ms double precision, p_label pg_catalog.text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_token bigint;
BEGIN
  INSERT INTO @schema@.shares (name, id, kind, weight, token, granted_at, expires_at, label)
    VALUES (p_name, p_id, p_kind, p_weight, pg_catalog.nextval('@schema@.numbers'::pg_catalog.regclass), pg_catalog.clock_timestamp(),
            pg_catalog.clock_timestamp() + p_ttl_ms * interval '1 millisecond', p_label)
    RETURNING shares.token INTO v_token;
  RETURN v_token;
END $$;

-- Whole milliseconds, rounded down: of other numbers the text depends on `extra_float_digits` of the session, and one that is rounded up
-- would let a lease live for too long. All names are qualified: a function that sets a search_path cannot be inlined.
CREATE FUNCTION @schema@.ms_until(p_moment pg_catalog.timestamptz) RETURNS bigint LANGUAGE sql AS $$
  SELECT pg_catalog.floor(extract(epoch FROM p_moment OPERATOR(pg_catalog.-) pg_catalog.clock_timestamp())
          OPERATOR(pg_catalog.*) 1000)::bigint;
$$;

-- How long until the first hold of a resource expires; -1 when nobody holds it.
CREATE FUNCTION @schema@.ms_to_expiry(p_lock @schema@.locks) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_ends timestamptz := p_lock.expires_at;
BEGIN
  IF p_lock.id IS NULL THEN
    SELECT pg_catalog.min(shares.expires_at) INTO v_ends FROM @schema@.shares WHERE shares.name = p_lock.name;
  END IF;
  RETURN coalesce(@schema@.ms_until(v_ends), -1);
END $$;

-- A mode in use on a resource, as "kind weight permits": of a holder, or else of the first waiter.
CREATE FUNCTION @schema@.living_mode(p_lock @schema@.locks) RETURNS pg_catalog.text LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
  SELECT kind || ' ' || weight || ' ' || coalesce(p_lock.permits, 0 /* no permits */) FROM (
    SELECT 0 AS rank, 0 /* exclusive */ AS kind, 1 AS weight WHERE p_lock.id IS NOT NULL
    UNION ALL (SELECT 1, shares.kind, shares.weight FROM @schema@.shares WHERE shares.name = p_lock.name LIMIT 1)
    UNION ALL (SELECT 2, waiters.kind, waiters.weight FROM @schema@.waiters
               WHERE waiters.name = p_lock.name ORDER BY waiters.ticket LIMIT 1)
    UNION ALL SELECT 3, 0 /* exclusive */, 1
  ) modes ORDER BY rank LIMIT 1;
$$;

-- Ends every hold of a locked resource and grants it to p_id, ahead of the queue.
CREATE FUNCTION @schema@.steal(p_name pg_catalog.bytea, p_id pg_catalog.text, p_kind smallint, p_weight integer, p_permits integer,
    p_ttl_ms double precision, p_label pg_catalog.text, p_client pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$
DECLARE
  v_lock @schema@.locks;
  v_waiter record;
  v_token bigint;
BEGIN
  DELETE FROM @schema@.waiters WHERE waiters.client = p_client AND waiters.id = p_id AND waiters.name = p_name;
  SELECT * INTO v_lock FROM @schema@.locks WHERE locks.name = p_name;
  SELECT waiters.kind, waiters.weight INTO v_waiter
    FROM @schema@.waiters JOIN @schema@.clients
      ON clients.client = waiters.client AND clients.alive_until > pg_catalog.clock_timestamp()
    WHERE waiters.name = p_name ORDER BY waiters.ticket LIMIT 1;
  IF FOUND AND v_lock.permits IS DISTINCT FROM p_permits THEN
    RETURN 'c ' || v_waiter.kind || ' ' || v_waiter.weight || ' ' || coalesce(v_lock.permits, 0 /* no permits */)
      || @schema@.serve(p_name, p_client, NULL);
  END IF;
  DELETE FROM @schema@.shares WHERE shares.name = p_name;
  v_token := pg_catalog.nextval('@schema@.numbers'::pg_catalog.regclass);
  UPDATE @schema@.locks SET id = CASE WHEN p_kind = 0 /* exclusive */ THEN p_id END, token = v_token,
    granted_at = pg_catalog.clock_timestamp(),
    expires_at = pg_catalog.clock_timestamp() + p_ttl_ms * interval '1 millisecond', label = p_label,
    permits = p_permits, stolen = v_token
    WHERE locks.name = p_name;
  IF p_kind = 0 /* exclusive */ THEN
    RETURN 'g ' || v_token;
  END IF;
  v_token := @schema@.add_share(p_name, p_id, p_kind, p_weight, p_ttl_ms, p_label);
  RETURN 'g ' || v_token || @schema@.serve(p_name, p_client, NULL);
END $$;
