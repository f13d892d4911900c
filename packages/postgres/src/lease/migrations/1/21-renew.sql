-- Extends live holds, each to its own ttl from now. Reply: a letter for each in the given order: h held, e expired, t taken
-- over, f force-released (gone before its time).
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

-- Lets the live hold of one grant end p_ms from now. Reply: whether there is one.
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

-- Why a hold is not live: a letter of `renew`.
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
