-- Serves a resource that the caller has locked: ends expired holds, hands the lock off to the head of the queue for as long
-- as the head fits, and removes a resource that nobody uses. A hand-off lasts for the claim time, until its client confirms
-- it. Other clients are notified on their channel with "id token ms", except clients that do not listen (their names begin
-- with a point). The calling client, p_client, is alive; the reply has its hand-offs: a line feed and "id token ms" each.
CREATE FUNCTION @schema@.serve(p_name pg_catalog.bytea, p_client pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_moment CONSTANT timestamptz := pg_catalog.clock_timestamp();
  v_before @schema@.locks;
  v_lock @schema@.locks;
  v_next record;
  v_unconfirmed text;
  v_holders integer := 0;
  v_weights bigint := 0;
  v_token bigint;
  v_ms double precision;
  v_message text;
  v_served text := '';
BEGIN
  SELECT * INTO v_lock FROM @schema@.locks l WHERE l.name = p_name;
  v_before := v_lock;
  IF v_lock.id IS NOT NULL THEN
    IF v_lock.expires_at > v_moment THEN
      RETURN '';
    END IF;
    IF v_lock.pushed_to IS NOT NULL THEN
      PERFORM @schema@.pass_over(p_name, v_lock.pushed_to);
    END IF;
    v_lock.id := NULL;
  END IF;
  -- Delete before counting: the delete waits for a renewal under way, and then sees the new end of the hold.
  FOR v_unconfirmed IN
    DELETE FROM @schema@.shares s WHERE s.name = p_name AND s.expires_at <= v_moment RETURNING s.pushed_to
  LOOP
    IF v_unconfirmed IS NOT NULL THEN
      PERFORM @schema@.pass_over(p_name, v_unconfirmed);
    END IF;
  END LOOP;
  SELECT pg_catalog.count(*), coalesce(pg_catalog.sum(s.weight), 0) INTO v_holders, v_weights FROM @schema@.shares s WHERE s.name = p_name;

  WHILE v_lock.queued AND v_lock.id IS NULL LOOP
    SELECT w.*, (w.client = p_client OR c.alive_until > v_moment) AS alive INTO v_next
      FROM @schema@.waiters w LEFT JOIN @schema@.clients c ON c.client = w.client
      WHERE w.name = p_name ORDER BY w.ticket LIMIT 1;
    IF NOT FOUND THEN
      v_lock.queued := false;
      EXIT;
    END IF;
    IF v_next.alive IS TRUE THEN
      EXIT WHEN v_next.kind = 0 AND v_holders > 0;
      EXIT WHEN v_next.kind = 2 AND v_weights + v_next.weight > v_lock.permits;
    END IF;
    DELETE FROM @schema@.waiters w WHERE w.name = p_name AND w.ticket = v_next.ticket;
    CONTINUE WHEN v_next.alive IS NOT TRUE;
    v_token := pg_catalog.nextval('@schema@.numbers'::pg_catalog.regclass);
    v_ms := least(v_next.ttl_ms, @schema@.claim_ms());
    v_message := v_next.id || ' ' || v_token || ' ' || v_ms;
    IF v_next.client = p_client THEN
      v_served := v_served || E'\n' || v_message;
    ELSIF pg_catalog.left(v_next.client, 1) <> '.' THEN
      PERFORM pg_catalog.pg_notify('locks_' || v_next.client, v_message);
    END IF;
    IF v_next.kind = 0 THEN
      v_lock.id := v_next.id;
      v_lock.token := v_token;
      v_lock.granted_at := pg_catalog.clock_timestamp();
      v_lock.expires_at := v_lock.granted_at + v_ms * interval '1 millisecond';
      v_lock.pushed_to := v_next.client;
      v_lock.label := v_next.label;
    ELSE
      INSERT INTO @schema@.shares (name, id, kind, weight, token, granted_at, expires_at, pushed_to, label)
        VALUES (p_name, v_next.id, v_next.kind, v_next.weight, v_token, pg_catalog.clock_timestamp(),
                pg_catalog.clock_timestamp() + v_ms * interval '1 millisecond', v_next.client, v_next.label);
      v_holders := v_holders + 1;
      v_weights := v_weights + v_next.weight;
    END IF;
  END LOOP;

  IF v_lock.id IS NULL AND v_holders = 0 AND NOT v_lock.queued THEN
    DELETE FROM @schema@.locks l WHERE l.name = p_name;
  ELSIF v_lock IS DISTINCT FROM v_before THEN
    UPDATE @schema@.locks l SET queued = v_lock.queued, id = v_lock.id, token = v_lock.token,
      granted_at = v_lock.granted_at, expires_at = v_lock.expires_at, pushed_to = v_lock.pushed_to, label = v_lock.label
      WHERE l.name = p_name;
  END IF;
  RETURN v_served;
END $$;

-- How long a hand-off lasts until its client confirms it. The body names no object, so it sets no search_path.
CREATE FUNCTION @schema@.claim_ms() RETURNS double precision LANGUAGE sql IMMUTABLE AS $$ SELECT 2000::double precision $$;
