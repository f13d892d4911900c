-- Ends what ran out on a resource that the caller has locked, hands over to the head of its queue for as long as that
-- fits, and removes the resource when it is in no use. A hand-over lasts for the claim time only, until its client is
-- heard of. Other clients are told on their channel, as "id token ms", save those that do not listen (their names begin
-- with a point); the asking client, p_client, is alive and gets its own as the reply: a line feed and "id token ms" for
-- each.
CREATE FUNCTION @schema@.serve(p_name bytea, p_client text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_moment CONSTANT timestamptz := clock_timestamp();
  v_before @schema@.locks;
  v_lock @schema@.locks;
  v_next record;
  v_silent text;
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
  -- A delete, and only then a look: it waits for a renewal under way, and then finds the new end.
  FOR v_silent IN
    DELETE FROM @schema@.shares s WHERE s.name = p_name AND s.expires_at <= v_moment RETURNING s.pushed_to
  LOOP
    IF v_silent IS NOT NULL THEN
      PERFORM @schema@.pass_over(p_name, v_silent);
    END IF;
  END LOOP;
  SELECT count(*), coalesce(sum(s.weight), 0) INTO v_holders, v_weights FROM @schema@.shares s WHERE s.name = p_name;

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
    v_token := nextval('@schema@.numbers');
    v_ms := least(v_next.ttl_ms, @schema@.claim_ms());
    v_message := v_next.id || ' ' || v_token || ' ' || v_ms;
    IF v_next.client = p_client THEN
      v_served := v_served || E'\n' || v_message;
    ELSIF left(v_next.client, 1) <> '.' THEN
      PERFORM pg_notify('locks_' || v_next.client, v_message);
    END IF;
    IF v_next.kind = 0 THEN
      v_lock.id := v_next.id;
      v_lock.token := v_token;
      v_lock.granted_at := clock_timestamp();
      v_lock.expires_at := v_lock.granted_at + v_ms * interval '1 millisecond';
      v_lock.pushed_to := v_next.client;
      v_lock.label := v_next.label;
    ELSE
      INSERT INTO @schema@.shares (name, id, kind, weight, token, granted_at, expires_at, pushed_to, label)
        VALUES (p_name, v_next.id, v_next.kind, v_next.weight, v_token, clock_timestamp(),
                clock_timestamp() + v_ms * interval '1 millisecond', v_next.client, v_next.label);
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

-- How long a hand-over lasts until its client is heard of.
CREATE FUNCTION @schema@.claim_ms() RETURNS double precision LANGUAGE sql IMMUTABLE AS $$ SELECT 2000::double precision $$;
