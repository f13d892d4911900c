-- Pushes the ends of holds back, each to its own ttl from now: only while they live. Reply: a letter for each in the given
-- order: h held, e ran out, t taken over, f gone before its time.
CREATE FUNCTION @schema@.renew(p_names bytea[], p_ids text[], p_tokens bigint[], p_ttls double precision[])
    RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_item record;
  v_answers text[];
BEGIN
  FOR v_item IN
    SELECT * FROM unnest(p_names, p_ids, p_tokens, p_ttls) WITH ORDINALITY AS i(name, id, token, ttl_ms, place)
      ORDER BY i.name
  LOOP
    v_answers[v_item.place] := CASE
      WHEN @schema@.extend(v_item.name, v_item.id, v_item.ttl_ms, true) IS NOT NULL THEN 'h'
      ELSE @schema@.loss(v_item.name, v_item.id, v_item.token) END;
  END LOOP;
  RETURN array_to_string(v_answers, '');
END $$;

-- "TOKEN MS" of a live hold, which now ends in p_ms from now, or, where it may not be cut short, later if it did before; null
-- when there is none.
CREATE FUNCTION @schema@.extend(p_name bytea, p_id text, p_ms double precision, p_may_cut boolean)
    RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_at timestamptz := clock_timestamp() + p_ms * interval '1 millisecond';
  v_token bigint;
  v_ends timestamptz;
BEGIN
  UPDATE @schema@.locks l
    SET expires_at = CASE WHEN p_may_cut THEN v_at ELSE greatest(l.expires_at, v_at) END, pushed_to = NULL
    WHERE l.name = p_name AND l.id = p_id AND l.expires_at > clock_timestamp()
    RETURNING l.token, l.expires_at INTO v_token, v_ends;
  IF NOT FOUND THEN
    UPDATE @schema@.shares s
      SET expires_at = CASE WHEN p_may_cut THEN v_at ELSE greatest(s.expires_at, v_at) END, pushed_to = NULL
      WHERE s.name = p_name AND s.id = p_id AND s.expires_at > clock_timestamp()
      RETURNING s.token, s.expires_at INTO v_token, v_ends;
  END IF;
  RETURN v_token || ' ' || @schema@.ms_until(v_ends);
END $$;

-- What became of a hold that is not live.
CREATE FUNCTION @schema@.loss(p_name bytea, p_id text, p_token bigint) RETURNS text LANGUAGE sql AS $$
  SELECT CASE
    WHEN EXISTS (SELECT 1 FROM @schema@.locks l WHERE l.name = p_name AND l.id = p_id) THEN 'e'
    WHEN EXISTS (SELECT 1 FROM @schema@.shares s WHERE s.name = p_name AND s.id = p_id) THEN 'e'
    WHEN EXISTS (SELECT 1 FROM @schema@.locks l
                 WHERE l.name = p_name AND (l.stolen > p_token OR l.expires_at > clock_timestamp() AND l.id IS NOT NULL))
      THEN 't'
    ELSE 'f' END;
$$;
