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
    SELECT * FROM unnest(p_names, p_ids, p_tokens, p_ttls) WITH ORDINALITY AS i(name, id, token, ttl_ms, position)
      ORDER BY i.name
  LOOP
    v_answers[v_item.position] := CASE
      WHEN @schema@.extend(v_item.name, v_item.id, v_item.token, v_item.ttl_ms) THEN 'h'
      ELSE @schema@.loss(v_item.name, v_item.id, v_item.token) END;
  END LOOP;
  RETURN pg_catalog.array_to_string(v_answers, '');
END $$;

-- Lets the live hold of one grant end p_ms from now. Reply: whether there is one.
CREATE FUNCTION @schema@.extend(p_name pg_catalog.bytea, p_id pg_catalog.text, p_token bigint, p_ms double precision) RETURNS boolean LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_at CONSTANT timestamptz := pg_catalog.clock_timestamp() + p_ms * interval '1 millisecond';
BEGIN
  UPDATE @schema@.locks l SET expires_at = v_at
    WHERE l.name = p_name AND l.id = p_id AND l.token = p_token AND l.expires_at > pg_catalog.clock_timestamp();
  IF NOT FOUND THEN
    UPDATE @schema@.shares s SET expires_at = v_at
      WHERE s.name = p_name AND s.id = p_id AND s.token = p_token AND s.expires_at > pg_catalog.clock_timestamp();
  END IF;
  RETURN FOUND;
END $$;

-- Why a hold is not live: a letter of `renew`.
CREATE FUNCTION @schema@.loss(p_name pg_catalog.bytea, p_id pg_catalog.text, p_token bigint) RETURNS pg_catalog.text LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN EXISTS (SELECT 1 FROM @schema@.locks l WHERE l.name = p_name AND l.id = p_id) THEN 'e'
    WHEN EXISTS (SELECT 1 FROM @schema@.shares s WHERE s.name = p_name AND s.id = p_id) THEN 'e'
    WHEN EXISTS (SELECT 1 FROM @schema@.locks l
                 WHERE l.name = p_name AND (l.stolen > p_token OR l.expires_at > pg_catalog.clock_timestamp() AND l.id IS NOT NULL))
      THEN 't'
    ELSE 'f' END;
$$;
