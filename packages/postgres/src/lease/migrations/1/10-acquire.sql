-- One attempt. p_steals: ends the holds of others. p_enqueues: puts p_id into the queue when contended, unless p_max_waiters wait
-- there (-1: however many wait). p_permits: null or 0 unless p_kind is 2. p_label: null or empty: none.
-- Reply, followed by the hand-offs of `serve` to this client:
--   g TOKEN                    granted now, for the ttl
--   h TOKEN MS                 granted by an earlier attempt of p_id, for MS more
--   q TICKET MS                contended; queued with this ticket (0: not queued); a hold may expire in MS
--   c KIND WEIGHT PERMITS      conflict with this mode
--   f                          so many wait already
CREATE FUNCTION @schema@.acquire(p_name pg_catalog.bytea, p_id pg_catalog.text, p_kind smallint, p_weight integer, p_permits integer,
    p_ttl_ms double precision, p_label pg_catalog.text, p_client pg_catalog.text, p_steals boolean, p_enqueues boolean,
    p_max_waiters integer) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_moment timestamptz := pg_catalog.clock_timestamp();
  v_lock @schema@.locks;
  v_share record;
  v_token bigint;
  v_weights bigint;
  v_served text := '';
BEGIN
  p_permits := NULLIF(p_permits, 0);
  p_label := NULLIF(p_label, '');
  -- Refused here and not only by a release, whose failure would leave the hold.
  IF pg_catalog.current_setting('transaction_isolation') <> 'read committed' THEN
    PERFORM @schema@.enter(p_name);
  END IF;
  LOOP
    IF p_kind = 0 /* exclusive */ THEN
      INSERT INTO @schema@.locks (name, queued, stolen, id, token, granted_at, expires_at, label)
        VALUES (p_name, false, 0, p_id, pg_catalog.nextval('@schema@.numbers'::pg_catalog.regclass), v_moment,
                v_moment + p_ttl_ms * interval '1 millisecond', p_label)
        ON CONFLICT (name) DO NOTHING RETURNING token INTO v_token;
      IF FOUND THEN
        -- The token was drawn before the insert, which may have waited until other holders had come and gone.
        IF pg_catalog.pg_sequence_last_value('@schema@.numbers'::pg_catalog.regclass) <> v_token THEN
          v_token := @schema@.draw_again(p_name);
        END IF;
        RETURN 'g ' || v_token || v_served;
      END IF;
    ELSE
      INSERT INTO @schema@.locks (name, queued, stolen, permits) VALUES (p_name, false, 0, p_permits)
        ON CONFLICT (name) DO NOTHING;
      IF FOUND THEN
        RETURN 'g ' || @schema@.add_share(p_name, p_id, p_kind, p_weight, p_ttl_ms, p_label) || v_served;
      END IF;
    END IF;
    CONTINUE WHEN NOT @schema@.enter(p_name);
    -- One more reader beside readers, without a queue: nothing has to be counted, however many they are.
    IF p_kind = 1 /* shared */ AND NOT p_steals
        AND EXISTS (SELECT 1 FROM @schema@.locks
                    WHERE locks.name = p_name AND locks.id IS NULL AND NOT locks.queued AND locks.permits IS NULL)
        AND NOT EXISTS (SELECT 1 FROM @schema@.shares WHERE shares.name = p_name AND shares.id = p_id) THEN
      RETURN 'g ' || @schema@.add_share(p_name, p_id, p_kind, p_weight, p_ttl_ms, p_label) || v_served;
    END IF;
    -- A steal would take the lock at once from those that are served, who then wait no more.
    IF NOT p_steals THEN
      v_served := v_served || @schema@.serve(p_name, p_client, NULL);
    END IF;
    SELECT * INTO v_lock FROM @schema@.locks WHERE locks.name = p_name;
    EXIT WHEN FOUND;
    v_moment := pg_catalog.clock_timestamp();
  END LOOP;

  -- From here on somebody holds the resource, or waits for more permits than are free; before a steal, whatever was there.
  IF v_lock.id = p_id AND v_lock.expires_at > pg_catalog.clock_timestamp() THEN
    RETURN 'h ' || v_lock.token || ' ' || @schema@.ms_until(v_lock.expires_at) || v_served;
  END IF;
  SELECT shares.token, shares.expires_at INTO v_share
    FROM @schema@.shares
    WHERE shares.name = p_name AND shares.id = p_id AND shares.expires_at > pg_catalog.clock_timestamp();
  IF FOUND THEN
    RETURN 'h ' || v_share.token || ' ' || @schema@.ms_until(v_share.expires_at) || v_served;
  END IF;
  IF p_steals THEN
    RETURN @schema@.steal(p_name, p_id, p_kind, p_weight, p_permits, p_ttl_ms, p_label, p_client);
  END IF;
  SELECT waiters.ticket INTO v_token FROM @schema@.waiters
    WHERE waiters.client = p_client AND waiters.id = p_id AND waiters.name = p_name;
  IF FOUND THEN
    RETURN 'q ' || v_token || ' ' || @schema@.ms_to_expiry(v_lock) || v_served;
  END IF;
  IF v_lock.permits IS DISTINCT FROM p_permits THEN
    RETURN 'c ' || @schema@.living_mode(v_lock) || v_served;
  END IF;
  -- `serve` has served the queue as far as it fits: whoever is left in it goes before this attempt.
  IF p_kind <> 0 /* exclusive */ AND v_lock.id IS NULL AND NOT v_lock.queued THEN
    SELECT coalesce(pg_catalog.sum(shares.weight), 0) INTO v_weights
      FROM @schema@.shares WHERE shares.name = p_name;
    IF p_kind = 1 /* shared */ OR v_weights + p_weight <= p_permits THEN
      RETURN 'g ' || @schema@.add_share(p_name, p_id, p_kind, p_weight, p_ttl_ms, p_label) || v_served;
    END IF;
  END IF;
  IF NOT p_enqueues THEN
    RETURN 'q 0 ' /* not queued */ || @schema@.ms_to_expiry(v_lock) || v_served;
  END IF;

  IF p_max_waiters >= 0 AND @schema@.is_full(p_name, p_client, p_max_waiters) THEN
    RETURN 'f' || v_served;
  END IF;

  v_token := pg_catalog.nextval('@schema@.numbers'::pg_catalog.regclass);
  INSERT INTO @schema@.waiters (name, ticket, client, id, kind, weight, ttl_ms, enqueued_at, label)
    VALUES (p_name, v_token, p_client, p_id, p_kind, p_weight, p_ttl_ms, pg_catalog.clock_timestamp(), p_label);
  IF NOT v_lock.queued THEN
    UPDATE @schema@.locks SET queued = true WHERE locks.name = p_name;
  END IF;
  PERFORM 1 FROM @schema@.clients WHERE clients.client = p_client
    AND clients.alive_until > pg_catalog.clock_timestamp() + interval '1500 milliseconds';
  IF NOT FOUND THEN
    INSERT INTO @schema@.clients (client, alive_until) VALUES (p_client, pg_catalog.clock_timestamp() + interval '3 seconds')
      ON CONFLICT (client) DO UPDATE SET alive_until = excluded.alive_until;
  END IF;
  RETURN 'q ' || v_token || ' ' || @schema@.ms_to_expiry(v_lock) || v_served;
END $$;
