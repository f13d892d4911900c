-- Serves a resource that the caller has locked: ends expired holds, and the exclusive hold of p_ended, hands the lock off to the
-- head of the queue for as long as the head fits, and removes a resource that nobody uses. A hand-off lasts for the ttl of its
-- waiter.
-- Waiters of the calling client, p_client, are handed the lock in the reply: a line feed and "id token" each. Those of a
-- client that listens are notified on its channel with "id token". A head whose client does not listen takes the free lock
-- at its next check. A head whose client died is removed: the session of its listener has ended, or its last check was 3 s ago.
CREATE FUNCTION @schema@.serve(p_name pg_catalog.bytea, p_client pg_catalog.text, p_ended pg_catalog.text)
    RETURNS pg_catalog.text LANGUAGE plpgsql AS $$
DECLARE
  v_moment CONSTANT timestamptz := pg_catalog.clock_timestamp();
  v_before @schema@.locks;
  v_lock @schema@.locks;
  v_next record;
  v_holders integer := 0;
  v_weights bigint := 0;
  v_token bigint;
  v_message text;
  v_served text := '';
BEGIN
  SELECT * INTO v_lock FROM @schema@.locks WHERE locks.name = p_name;
  v_before := v_lock;
  IF v_lock.id IS NOT NULL THEN
    IF v_lock.expires_at > v_moment AND v_lock.id IS DISTINCT FROM p_ended THEN
      RETURN '' /* no hand-offs */;
    END IF;
    -- Nobody shares what one held alone.
    v_lock.id := NULL;
  ELSE
    -- Delete before counting: the delete waits for a renewal under way, and then sees the new end of the hold.
    DELETE FROM @schema@.shares WHERE shares.name = p_name AND shares.expires_at <= v_moment;
    SELECT pg_catalog.count(*), coalesce(pg_catalog.sum(shares.weight), 0) INTO v_holders, v_weights
      FROM @schema@.shares WHERE shares.name = p_name;
  END IF;

  WHILE v_lock.queued AND v_lock.id IS NULL LOOP
    SELECT waiters.*, CASE
        WHEN waiters.client = p_client THEN 'asks'
        WHEN @schema@.is_dead(clients.alive_until, clients.listener, clients.server_start, v_moment) THEN 'dead'
        WHEN clients.listener IS NULL OR clients.server_start <> pg_catalog.pg_postmaster_start_time()
          THEN 'polls'
        ELSE 'listens' END AS client_state INTO v_next
      FROM @schema@.waiters LEFT JOIN @schema@.clients ON clients.client = waiters.client
      WHERE waiters.name = p_name ORDER BY waiters.ticket LIMIT 1;
    IF NOT FOUND THEN
      v_lock.queued := false;
      EXIT;
    END IF;
    IF v_next.client_state <> 'dead' THEN
      EXIT WHEN v_next.client_state = 'polls';
      EXIT WHEN v_next.kind = 0 /* exclusive */ AND v_holders > 0;
      EXIT WHEN v_next.kind = 2 /* permit */ AND v_weights + v_next.weight > v_lock.permits;
    END IF;
    DELETE FROM @schema@.waiters WHERE waiters.name = p_name AND waiters.ticket = v_next.ticket;
    CONTINUE WHEN v_next.client_state = 'dead';
    v_token := pg_catalog.nextval('@schema@.numbers'::pg_catalog.regclass);
    v_message := v_next.id || ' ' || v_token;
    IF v_next.client_state = 'asks' THEN
      v_served := v_served || E'\n' || v_message;
    ELSE
      PERFORM pg_catalog.pg_notify('locks_' || v_next.client, v_message);
    END IF;
    IF v_next.kind = 0 /* exclusive */ THEN
      v_lock.id := v_next.id;
      v_lock.token := v_token;
      v_lock.granted_at := pg_catalog.clock_timestamp();
      v_lock.expires_at := v_lock.granted_at + v_next.ttl_ms * interval '1 millisecond';
      v_lock.label := v_next.label;
    ELSE
      INSERT INTO @schema@.shares (name, id, kind, weight, token, granted_at, expires_at, label)
        VALUES (p_name, v_next.id, v_next.kind, v_next.weight, v_token, pg_catalog.clock_timestamp(),
                pg_catalog.clock_timestamp() + v_next.ttl_ms * interval '1 millisecond', v_next.label);
      v_holders := v_holders + 1;
      v_weights := v_weights + v_next.weight;
    END IF;
  END LOOP;

  IF v_lock.id IS NULL AND v_holders = 0 AND NOT v_lock.queued THEN
    DELETE FROM @schema@.locks WHERE locks.name = p_name;
  ELSIF v_lock IS DISTINCT FROM v_before THEN
    UPDATE @schema@.locks SET queued = v_lock.queued, id = v_lock.id, token = v_lock.token,
      granted_at = v_lock.granted_at, expires_at = v_lock.expires_at, label = v_lock.label
      WHERE locks.name = p_name;
  END IF;
  RETURN v_served;
END $$;

-- Whether the session has ended that held the advisory lock of this key. Unlocked at once: a statement may ask for thousands.
-- All names are qualified: a function that sets a search_path cannot be inlined.
CREATE FUNCTION @schema@.has_ended(p_listener bigint) RETURNS boolean LANGUAGE sql AS $$
  SELECT CASE WHEN pg_catalog.pg_try_advisory_lock_shared(p_listener)
    THEN pg_catalog.pg_advisory_unlock_shared(p_listener) ELSE false END;
$$;

-- Whether a client died, by its row in `clients`, whose columns are null where there is none. The keys of a server that was restarted
-- since then say nothing.
CREATE FUNCTION @schema@.is_dead(p_alive_until pg_catalog.timestamptz, p_listener bigint, p_server_start pg_catalog.timestamptz,
    p_moment pg_catalog.timestamptz) RETURNS boolean LANGUAGE sql AS $$
  SELECT (p_alive_until OPERATOR(pg_catalog.>) p_moment) IS NOT TRUE
    OR p_listener IS NOT NULL AND p_server_start OPERATOR(pg_catalog.=) pg_catalog.pg_postmaster_start_time()
      AND @schema@.has_ended(p_listener);
$$;
