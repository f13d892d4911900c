// Generated from src/lease/migrations by generate.mjs. Do not edit.

/** One text for each version of the schema, the first first. */
export const migrations: readonly string[] = [
  `CREATE TABLE @schema@.schema_version (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  swept_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
INSERT INTO @schema@.schema_version (version) VALUES (1);
CREATE SEQUENCE @schema@.numbers AS bigint;
CREATE TABLE @schema@.locks (
  name pg_catalog.bytea PRIMARY KEY,
  queued boolean NOT NULL,
  permits integer,
  stolen bigint NOT NULL,
  id pg_catalog.text,
  token bigint,
  granted_at pg_catalog.timestamptz,
  expires_at pg_catalog.timestamptz,
  label pg_catalog.text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        vacuum_truncate = false);
CREATE TABLE @schema@.shares (
  name pg_catalog.bytea NOT NULL,
  id pg_catalog.text NOT NULL,
  kind smallint NOT NULL,
  weight integer NOT NULL,
  token bigint NOT NULL,
  granted_at pg_catalog.timestamptz NOT NULL,
  expires_at pg_catalog.timestamptz NOT NULL,
  label pg_catalog.text,
  PRIMARY KEY (name, id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        vacuum_truncate = false);
CREATE TABLE @schema@.waiters (
  name pg_catalog.bytea NOT NULL,
  ticket bigint NOT NULL,
  client pg_catalog.text NOT NULL,
  id pg_catalog.text NOT NULL,
  kind smallint NOT NULL,
  weight integer NOT NULL,
  ttl_ms double precision NOT NULL,
  enqueued_at pg_catalog.timestamptz NOT NULL,
  label pg_catalog.text,
  PRIMARY KEY (name, ticket)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        vacuum_truncate = false);
CREATE UNIQUE INDEX waiters_of_client ON @schema@.waiters (client, id);
CREATE TABLE @schema@.clients (
  client pg_catalog.text PRIMARY KEY,
  alive_until pg_catalog.timestamptz NOT NULL,
  listener bigint,
  server_start pg_catalog.timestamptz
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        vacuum_truncate = false);
CREATE FUNCTION @schema@.enter(p_name pg_catalog.bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF pg_catalog.current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'locks need transactions at read committed, not %', pg_catalog.current_setting('transaction_isolation')
      USING ERRCODE = 'LK001',
            HINT = 'Use ALTER ROLE … SET default_transaction_isolation = ''read committed'' for the role of the locks.';
  END IF;
  PERFORM 1 FROM @schema@.locks WHERE locks.name = p_name FOR UPDATE;
  RETURN FOUND;
END $$;
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
      RETURN '';
    END IF;
    v_lock.id := NULL;
  ELSE
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
      EXIT WHEN v_next.kind = 0 AND v_holders > 0;
      EXIT WHEN v_next.kind = 2 AND v_weights + v_next.weight > v_lock.permits;
    END IF;
    DELETE FROM @schema@.waiters WHERE waiters.name = p_name AND waiters.ticket = v_next.ticket;
    CONTINUE WHEN v_next.client_state = 'dead';
    v_token := pg_catalog.nextval('@schema@.numbers'::pg_catalog.regclass);
    v_message := v_next.id || ' ' || v_token;
    IF v_next.client_state = 'asks' THEN
      v_served := v_served || E'\\n' || v_message;
    ELSE
      PERFORM pg_catalog.pg_notify('locks_' || v_next.client, v_message);
    END IF;
    IF v_next.kind = 0 THEN
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
CREATE FUNCTION @schema@.has_ended(p_listener bigint) RETURNS boolean LANGUAGE sql AS $$
  SELECT CASE WHEN pg_catalog.pg_try_advisory_lock_shared(p_listener)
    THEN pg_catalog.pg_advisory_unlock_shared(p_listener) ELSE false END;
$$;
CREATE FUNCTION @schema@.is_dead(p_alive_until pg_catalog.timestamptz, p_listener bigint, p_server_start pg_catalog.timestamptz,
    p_moment pg_catalog.timestamptz) RETURNS boolean LANGUAGE sql AS $$
  SELECT (p_alive_until OPERATOR(pg_catalog.>) p_moment) IS NOT TRUE
    OR p_listener IS NOT NULL AND p_server_start OPERATOR(pg_catalog.=) pg_catalog.pg_postmaster_start_time()
      AND @schema@.has_ended(p_listener);
$$;
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
  IF pg_catalog.current_setting('transaction_isolation') <> 'read committed' THEN
    PERFORM @schema@.enter(p_name);
  END IF;
  LOOP
    IF p_kind = 0 THEN
      INSERT INTO @schema@.locks (name, queued, stolen, id, token, granted_at, expires_at, label)
        VALUES (p_name, false, 0, p_id, pg_catalog.nextval('@schema@.numbers'::pg_catalog.regclass), v_moment,
                v_moment + p_ttl_ms * interval '1 millisecond', p_label)
        ON CONFLICT (name) DO NOTHING RETURNING token INTO v_token;
      IF FOUND THEN
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
    IF p_kind = 1 AND NOT p_steals
        AND EXISTS (SELECT 1 FROM @schema@.locks
                    WHERE locks.name = p_name AND locks.id IS NULL AND NOT locks.queued AND locks.permits IS NULL)
        AND NOT EXISTS (SELECT 1 FROM @schema@.shares WHERE shares.name = p_name AND shares.id = p_id) THEN
      RETURN 'g ' || @schema@.add_share(p_name, p_id, p_kind, p_weight, p_ttl_ms, p_label) || v_served;
    END IF;
    IF NOT p_steals THEN
      v_served := v_served || @schema@.serve(p_name, p_client, NULL);
    END IF;
    SELECT * INTO v_lock FROM @schema@.locks WHERE locks.name = p_name;
    EXIT WHEN FOUND;
    v_moment := pg_catalog.clock_timestamp();
  END LOOP;
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
  IF p_kind <> 0 AND v_lock.id IS NULL AND NOT v_lock.queued THEN
    SELECT coalesce(pg_catalog.sum(shares.weight), 0) INTO v_weights
      FROM @schema@.shares WHERE shares.name = p_name;
    IF p_kind = 1 OR v_weights + p_weight <= p_permits THEN
      RETURN 'g ' || @schema@.add_share(p_name, p_id, p_kind, p_weight, p_ttl_ms, p_label) || v_served;
    END IF;
  END IF;
  IF NOT p_enqueues THEN
    RETURN 'q 0 ' || @schema@.ms_to_expiry(v_lock) || v_served;
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
CREATE FUNCTION @schema@.draw_again(p_name pg_catalog.bytea) RETURNS bigint LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_token bigint;
BEGIN
  UPDATE @schema@.locks SET token = pg_catalog.nextval('@schema@.numbers'::pg_catalog.regclass)
    WHERE locks.name = p_name RETURNING locks.token INTO v_token;
  RETURN v_token;
END $$;
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
CREATE FUNCTION @schema@.ms_until(p_moment pg_catalog.timestamptz) RETURNS bigint LANGUAGE sql AS $$
  SELECT pg_catalog.floor(extract(epoch FROM p_moment OPERATOR(pg_catalog.-) pg_catalog.clock_timestamp())
          OPERATOR(pg_catalog.*) 1000)::bigint;
$$;
CREATE FUNCTION @schema@.ms_to_expiry(p_lock @schema@.locks) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_ends timestamptz := p_lock.expires_at;
BEGIN
  IF p_lock.id IS NULL THEN
    SELECT pg_catalog.min(shares.expires_at) INTO v_ends FROM @schema@.shares WHERE shares.name = p_lock.name;
  END IF;
  RETURN coalesce(@schema@.ms_until(v_ends), -1);
END $$;
CREATE FUNCTION @schema@.living_mode(p_lock @schema@.locks) RETURNS pg_catalog.text LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
  SELECT kind || ' ' || weight || ' ' || coalesce(p_lock.permits, 0) FROM (
    SELECT 0 AS rank, 0 AS kind, 1 AS weight WHERE p_lock.id IS NOT NULL
    UNION ALL (SELECT 1, shares.kind, shares.weight FROM @schema@.shares WHERE shares.name = p_lock.name LIMIT 1)
    UNION ALL (SELECT 2, waiters.kind, waiters.weight FROM @schema@.waiters
               WHERE waiters.name = p_lock.name ORDER BY waiters.ticket LIMIT 1)
    UNION ALL SELECT 3, 0, 1
  ) modes ORDER BY rank LIMIT 1;
$$;
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
    RETURN 'c ' || v_waiter.kind || ' ' || v_waiter.weight || ' ' || coalesce(v_lock.permits, 0)
      || @schema@.serve(p_name, p_client, NULL);
  END IF;
  DELETE FROM @schema@.shares WHERE shares.name = p_name;
  v_token := pg_catalog.nextval('@schema@.numbers'::pg_catalog.regclass);
  UPDATE @schema@.locks SET id = CASE WHEN p_kind = 0 THEN p_id END, token = v_token,
    granted_at = pg_catalog.clock_timestamp(),
    expires_at = pg_catalog.clock_timestamp() + p_ttl_ms * interval '1 millisecond', label = p_label,
    permits = p_permits, stolen = v_token
    WHERE locks.name = p_name;
  IF p_kind = 0 THEN
    RETURN 'g ' || v_token;
  END IF;
  v_token := @schema@.add_share(p_name, p_id, p_kind, p_weight, p_ttl_ms, p_label);
  RETURN 'g ' || v_token || @schema@.serve(p_name, p_client, NULL);
END $$;
CREATE FUNCTION @schema@.acquire_many(p_names pg_catalog.bytea[], p_ids pg_catalog.text[], p_kinds smallint[], p_weights integer[],
    p_permits integer[], p_ttls double precision[], p_labels pg_catalog.text[], p_client pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_item record;
  v_reply text;
  v_grants text[];
  v_served text := '';
BEGIN
  FOR v_item IN
    SELECT * FROM unnest(p_names, p_ids, p_kinds, p_weights, p_permits, p_ttls, p_labels) WITH ORDINALITY
      AS item(name, id, kind, weight, permits, ttl_ms, label, position)
      ORDER BY item.name
  LOOP
    v_reply := @schema@.acquire(v_item.name, v_item.id, v_item.kind, v_item.weight, v_item.permits, v_item.ttl_ms,
                                v_item.label, p_client, false, false, -1);
    IF pg_catalog.left(v_reply, 1) IN ('q', 'c') THEN
      RAISE EXCEPTION 'contended' USING ERRCODE = 'LK002';
    END IF;
    v_grants[v_item.position] := pg_catalog.split_part(v_reply, E'\\n', 1);
    v_served := v_served || pg_catalog.substr(v_reply, pg_catalog.length(v_grants[v_item.position]) + 1);
  END LOOP;
  RETURN pg_catalog.array_to_string(v_grants, E'\\n') || v_served;
EXCEPTION WHEN SQLSTATE 'LK002' THEN
  RETURN NULL;
END $$;
CREATE FUNCTION @schema@.acquire_in_order(p_name pg_catalog.bytea, p_ids pg_catalog.text[], p_kinds smallint[], p_weights integer[],
    p_permits integer[], p_ttls double precision[], p_labels pg_catalog.text[], p_client pg_catalog.text, p_steals boolean[],
    p_enqueues boolean[], p_max_waiters integer[]) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_reply text;
  v_first text;
  v_replies text[];
  v_served text := '';
BEGIN
  FOR v_position IN 1 .. pg_catalog.cardinality(p_ids) LOOP
    v_reply := @schema@.acquire(p_name, p_ids[v_position], p_kinds[v_position], p_weights[v_position], p_permits[v_position],
                                p_ttls[v_position], p_labels[v_position], p_client, p_steals[v_position],
                                p_enqueues[v_position], p_max_waiters[v_position]);
    v_first := pg_catalog.split_part(v_reply, E'\\n', 1);
    v_replies[v_position] := v_first;
    v_served := v_served || pg_catalog.substr(v_reply, pg_catalog.length(v_first) + 1);
  END LOOP;
  RETURN pg_catalog.array_to_string(v_replies, E'\\n') || v_served;
END $$;
CREATE FUNCTION @schema@.adopt(p_name pg_catalog.bytea, p_id pg_catalog.text, p_adopts pg_catalog.text, p_ttl_ms double precision,
    p_label pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_lock @schema@.locks;
  v_moment timestamptz;
  v_token bigint;
BEGIN
  IF NOT @schema@.enter(p_name) THEN
    RETURN 'q 0 -1';
  END IF;
  v_moment := pg_catalog.clock_timestamp();
  SELECT * INTO v_lock FROM @schema@.locks WHERE locks.name = p_name AND locks.expires_at > v_moment;
  IF v_lock.id = p_id THEN
    RETURN 'h ' || v_lock.token || ' ' || @schema@.ms_until(v_lock.expires_at);
  END IF;
  IF v_lock.id = p_adopts THEN
    v_token := pg_catalog.nextval('@schema@.numbers'::pg_catalog.regclass);
    UPDATE @schema@.locks SET id = p_id, token = v_token, granted_at = v_moment,
      expires_at = v_moment + p_ttl_ms * interval '1 millisecond', label = p_label, stolen = v_token
      WHERE locks.name = p_name;
    RETURN 'g ' || v_token;
  END IF;
  RETURN 'q 0 -1';
END $$;
CREATE FUNCTION @schema@.release(p_name pg_catalog.bytea, p_id pg_catalog.text, p_client pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_live boolean;
BEGIN
  IF NOT @schema@.enter(p_name) THEN
    RETURN 'n';
  END IF;
  SELECT locks.expires_at > pg_catalog.clock_timestamp() INTO v_live
    FROM @schema@.locks WHERE locks.name = p_name AND locks.id = p_id;
  IF FOUND THEN
    RETURN CASE WHEN v_live THEN 'r' ELSE 'n' END || @schema@.serve(p_name, p_client, p_id);
  END IF;
  v_live := @schema@.end_hold(p_name, p_id);
  IF v_live IS NULL THEN
    RETURN 'n';
  END IF;
  RETURN CASE WHEN v_live THEN 'r' ELSE 'n' END || @schema@.serve(p_name, p_client, NULL);
END $$;
CREATE FUNCTION @schema@.end_hold(p_name pg_catalog.bytea, p_id pg_catalog.text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_live boolean;
BEGIN
  UPDATE @schema@.locks SET id = NULL WHERE locks.name = p_name AND locks.id = p_id
    RETURNING locks.expires_at > pg_catalog.clock_timestamp() INTO v_live;
  IF NOT FOUND THEN
    DELETE FROM @schema@.shares WHERE shares.name = p_name AND shares.id = p_id
      RETURNING shares.expires_at > pg_catalog.clock_timestamp() INTO v_live;
  END IF;
  RETURN v_live;
END $$;
CREATE FUNCTION @schema@.release_all(p_names pg_catalog.bytea[], p_ids pg_catalog.text[], p_client pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_item record;
  v_in_use boolean;
  v_ended boolean;
  v_live boolean;
  v_letters text[] := pg_catalog.array_fill('n'::text, ARRAY[pg_catalog.cardinality(p_ids)]);
  v_served text := '';
BEGIN
  FOR v_item IN
    SELECT item.*, pg_catalog.lag(item.name) OVER by_name IS DISTINCT FROM item.name AS is_first,
           pg_catalog.lead(item.name) OVER by_name IS DISTINCT FROM item.name AS is_last
      FROM unnest(p_names, p_ids) WITH ORDINALITY AS item(name, id, position)
      WINDOW by_name AS (ORDER BY item.name)
  LOOP
    IF v_item.is_first THEN
      v_in_use := @schema@.enter(v_item.name);
      v_ended := false;
    END IF;
    CONTINUE WHEN NOT v_in_use;
    DELETE FROM @schema@.waiters
      WHERE waiters.client = p_client AND waiters.id = v_item.id AND waiters.name = v_item.name;
    v_ended := v_ended OR FOUND;
    IF NOT FOUND THEN
      v_live := @schema@.end_hold(v_item.name, v_item.id);
      v_ended := v_ended OR v_live IS NOT NULL;
      IF v_live THEN
        v_letters[v_item.position] := 'r';
      END IF;
    END IF;
    IF v_item.is_last AND v_ended THEN
      v_served := v_served || @schema@.serve(v_item.name, p_client, NULL);
    END IF;
  END LOOP;
  RETURN pg_catalog.array_to_string(v_letters, '') || v_served;
END $$;
CREATE FUNCTION @schema@.renew(p_names pg_catalog.bytea[], p_ids pg_catalog.text[], p_tokens bigint[], p_ttls double precision[])
    RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_item record;
  v_answers text[];
BEGIN
  FOR v_item IN
    SELECT * FROM unnest(p_names, p_ids, p_tokens, p_ttls) WITH ORDINALITY AS item(name, id, token, ttl_ms, position)
      ORDER BY item.name
  LOOP
    v_answers[v_item.position] := CASE
      WHEN @schema@.extend(v_item.name, v_item.id, v_item.token, v_item.ttl_ms) THEN 'h'
      ELSE @schema@.loss(v_item.name, v_item.id, v_item.token) END;
  END LOOP;
  RETURN pg_catalog.array_to_string(v_answers, '');
END $$;
CREATE FUNCTION @schema@.extend(p_name pg_catalog.bytea, p_id pg_catalog.text, p_token bigint, p_ms double precision)
    RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_at CONSTANT timestamptz := pg_catalog.clock_timestamp() + p_ms * interval '1 millisecond';
BEGIN
  UPDATE @schema@.locks SET expires_at = v_at
    WHERE locks.name = p_name AND locks.id = p_id AND locks.token = p_token
      AND locks.expires_at > pg_catalog.clock_timestamp();
  IF NOT FOUND THEN
    UPDATE @schema@.shares SET expires_at = v_at
      WHERE shares.name = p_name AND shares.id = p_id AND shares.token = p_token
        AND shares.expires_at > pg_catalog.clock_timestamp();
  END IF;
  RETURN FOUND;
END $$;
CREATE FUNCTION @schema@.loss(p_name pg_catalog.bytea, p_id pg_catalog.text, p_token bigint) RETURNS pg_catalog.text LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN EXISTS (SELECT 1 FROM @schema@.locks WHERE locks.name = p_name AND locks.id = p_id) THEN 'e'
    WHEN EXISTS (SELECT 1 FROM @schema@.shares WHERE shares.name = p_name AND shares.id = p_id) THEN 'e'
    WHEN EXISTS (SELECT 1 FROM @schema@.locks
                 WHERE locks.name = p_name AND (locks.stolen > p_token
                   OR locks.expires_at > pg_catalog.clock_timestamp() AND locks.id IS NOT NULL))
      THEN 't'
    ELSE 'f' END;
$$;
CREATE FUNCTION @schema@.downgrade(p_name pg_catalog.bytea, p_id pg_catalog.text, p_token bigint, p_client pg_catalog.text)
    RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_ends timestamptz;
BEGIN
  IF NOT @schema@.enter(p_name) THEN
    RETURN 'f';
  END IF;
  INSERT INTO @schema@.shares (name, id, kind, weight, token, granted_at, expires_at, label)
    SELECT locks.name, locks.id, 1, 1, locks.token, locks.granted_at, locks.expires_at, locks.label
    FROM @schema@.locks
    WHERE locks.name = p_name AND locks.id = p_id AND locks.expires_at > pg_catalog.clock_timestamp();
  IF FOUND THEN
    UPDATE @schema@.locks SET id = NULL WHERE locks.name = p_name;
  END IF;
  SELECT shares.expires_at INTO v_ends FROM @schema@.shares
    WHERE shares.name = p_name AND shares.id = p_id AND shares.expires_at > pg_catalog.clock_timestamp();
  IF NOT FOUND THEN
    RETURN @schema@.loss(p_name, p_id, p_token);
  END IF;
  RETURN 'h ' || @schema@.ms_until(v_ends) || @schema@.serve(p_name, p_client, NULL);
END $$;
CREATE FUNCTION @schema@.resize(p_name pg_catalog.bytea, p_permits integer, p_client pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_lock @schema@.locks;
  v_served text;
BEGIN
  IF NOT @schema@.enter(p_name) THEN
    RETURN 's';
  END IF;
  v_served := @schema@.serve(p_name, p_client, NULL);
  SELECT * INTO v_lock FROM @schema@.locks WHERE locks.name = p_name;
  IF NOT FOUND THEN
    RETURN 's' || v_served;
  END IF;
  IF v_lock.permits IS NULL THEN
    RETURN 'c ' || @schema@.living_mode(v_lock) || v_served;
  END IF;
  UPDATE @schema@.locks SET permits = p_permits WHERE locks.name = p_name;
  RETURN 's' || v_served || @schema@.serve(p_name, p_client, NULL);
END $$;
CREATE FUNCTION @schema@.force_release(p_name pg_catalog.bytea, p_id pg_catalog.text, p_client pg_catalog.text)
    RETURNS TABLE (name pg_catalog.bytea, role pg_catalog.text, id pg_catalog.text, kind integer, weight integer, permits integer, label pg_catalog.text,
                   token bigint, age_ms bigint, left_ms bigint)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT @schema@.enter(p_name) THEN
    RETURN;
  END IF;
  RETURN QUERY SELECT * FROM @schema@.state(ARRAY[p_name])
    WHERE state.role = 'h' AND (p_id IS NULL OR state.id = p_id);
  UPDATE @schema@.locks SET id = NULL WHERE locks.name = p_name AND (p_id IS NULL OR locks.id = p_id);
  DELETE FROM @schema@.shares WHERE shares.name = p_name AND (p_id IS NULL OR shares.id = p_id);
  RETURN QUERY SELECT p_name, 's', @schema@.serve(p_name, p_client, NULL), 0, 0, 0, '', 0::bigint,
    0::bigint, 0::bigint;
END $$;
CREATE FUNCTION @schema@.check_waiters(p_client pg_catalog.text, p_names pg_catalog.bytea[], p_ids pg_catalog.text[], p_listener bigint)
    RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_name bytea;
  v_lines text;
  v_served text := '';
  v_next timestamptz;
BEGIN
  DELETE FROM @schema@.waiters WHERE waiters.client = p_client
    AND waiters.enqueued_at < pg_catalog.clock_timestamp() - interval '10 seconds'
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(p_ids) AS item(id) WHERE item.id = waiters.id);
  DELETE FROM @schema@.waiters WHERE waiters.client = p_client
    AND NOT EXISTS (SELECT 1 FROM @schema@.locks WHERE locks.name = waiters.name AND locks.queued);
  SELECT pg_catalog.string_agg(
      E'\\n' || coalesce('h ' || item.id || ' ' || hold.token || ' ' || @schema@.ms_until(hold.expires_at),
                       'm ' || item.id), '')
    INTO v_lines
    FROM unnest(p_names, p_ids) AS item(name, id) LEFT JOIN LATERAL (
      SELECT locks.token, locks.expires_at FROM @schema@.locks WHERE locks.name = item.name AND locks.id = item.id
      UNION ALL
      SELECT shares.token, shares.expires_at FROM @schema@.shares WHERE shares.name = item.name AND shares.id = item.id
    ) hold ON hold.expires_at > pg_catalog.clock_timestamp()
    WHERE NOT EXISTS (SELECT 1 FROM @schema@.waiters WHERE waiters.client = p_client AND waiters.id = item.id);
  FOR v_name IN
    SELECT locks.name FROM @schema@.locks
      WHERE locks.name = ANY (p_names) AND locks.queued
        AND (locks.id IS NULL OR locks.expires_at <= pg_catalog.clock_timestamp())
      ORDER BY locks.name
  LOOP
    IF @schema@.enter(v_name) THEN
      v_served := v_served || @schema@.serve(v_name, p_client, NULL);
    END IF;
  END LOOP;
  SELECT pg_catalog.min(ends) INTO v_next FROM (
    SELECT locks.expires_at AS ends FROM @schema@.locks WHERE locks.name = ANY (p_names) AND locks.id IS NOT NULL
    UNION ALL
    SELECT shares.expires_at FROM @schema@.shares WHERE shares.name = ANY (p_names)
  ) holds;
  INSERT INTO @schema@.clients (client, alive_until, listener, server_start)
    VALUES (p_client, pg_catalog.clock_timestamp() + interval '3 seconds', p_listener, pg_catalog.pg_postmaster_start_time())
    ON CONFLICT (client) DO UPDATE
      SET alive_until = excluded.alive_until, listener = excluded.listener, server_start = excluded.server_start;
  RETURN coalesce(@schema@.ms_until(v_next), -1) || coalesce(v_lines, '') || E'\\n' || v_served;
END $$;
CREATE FUNCTION @schema@.sweep() RETURNS pg_catalog.void LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_name bytea;
BEGIN
  UPDATE @schema@.schema_version SET swept_at = pg_catalog.clock_timestamp()
    WHERE swept_at < pg_catalog.clock_timestamp() - interval '30 seconds';
  IF NOT FOUND THEN
    RETURN;
  END IF;
  FOR v_name IN
    SELECT locks.name FROM @schema@.locks
      WHERE locks.id IS NULL OR locks.expires_at <= pg_catalog.clock_timestamp() ORDER BY locks.name
  LOOP
    IF @schema@.enter(v_name) THEN
      PERFORM @schema@.serve(v_name, NULL, NULL);
    END IF;
  END LOOP;
  DELETE FROM @schema@.clients WHERE clients.alive_until < pg_catalog.clock_timestamp() - interval '60 seconds'
    AND NOT EXISTS (SELECT 1 FROM @schema@.waiters WHERE waiters.client = clients.client)
    AND (clients.listener IS NULL OR @schema@.has_ended(clients.listener));
END $$;
CREATE FUNCTION @schema@.state(p_names pg_catalog.bytea[])
    RETURNS TABLE (name pg_catalog.bytea, role pg_catalog.text, id pg_catalog.text, kind integer, weight integer, permits integer, label pg_catalog.text,
                   token bigint, age_ms bigint, left_ms bigint)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
  SELECT name, role, id, kind, weight, permits, label, token,
         -@schema@.ms_until(since) AS age_ms, @schema@.ms_until(ends) AS left_ms
  FROM (
    SELECT locks.name, 'h' AS role, locks.id, 0 AS kind, 1 AS weight, locks.permits, locks.label,
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
CREATE FUNCTION @schema@.names_from(p_from pg_catalog.bytea, p_inclusive boolean, p_before pg_catalog.bytea, p_count integer)
    RETURNS SETOF pg_catalog.bytea LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
  SELECT locks.name FROM @schema@.locks
    WHERE locks.name >= p_from AND (p_inclusive OR locks.name > p_from) AND (p_before IS NULL OR locks.name < p_before)
    ORDER BY locks.name LIMIT p_count;
$$;`,
];
