-- Ends the hold of one acquisition. Reply: r (it was held) or n (it was not held, or had expired), and the hand-offs of
-- `serve`.
CREATE FUNCTION @schema@.release(p_name pg_catalog.bytea, p_id pg_catalog.text, p_client pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_live boolean;
BEGIN
  -- An enqueue under way locks this row. PostgreSQL checks the conditions again once that has committed, so no waiter is missed.
  DELETE FROM @schema@.locks l WHERE l.name = p_name AND l.id = p_id AND NOT l.queued
    RETURNING l.expires_at > pg_catalog.clock_timestamp() INTO v_live;
  IF FOUND THEN
    RETURN CASE WHEN v_live THEN 'r' ELSE 'n' END;
  END IF;
  IF NOT @schema@.enter(p_name) THEN
    RETURN 'n';
  END IF;
  v_live := @schema@.end_hold(p_name, p_id);
  IF v_live IS NULL THEN
    RETURN 'n';
  END IF;
  RETURN CASE WHEN v_live THEN 'r' ELSE 'n' END || @schema@.serve(p_name, p_client);
END $$;

-- Ends a hold of a resource that the caller has locked. Reply: whether the hold was live; null: there was none.
CREATE FUNCTION @schema@.end_hold(p_name pg_catalog.bytea, p_id pg_catalog.text) RETURNS boolean LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_live boolean;
BEGIN
  UPDATE @schema@.locks l SET id = NULL WHERE l.name = p_name AND l.id = p_id
    RETURNING l.expires_at > pg_catalog.clock_timestamp() INTO v_live;
  IF NOT FOUND THEN
    DELETE FROM @schema@.shares s WHERE s.name = p_name AND s.id = p_id
      RETURNING s.expires_at > pg_catalog.clock_timestamp() INTO v_live;
  END IF;
  RETURN v_live;
END $$;

-- Ends the holds of these acquisitions, and removes them from the queues. Reply: a letter of `release` for each in the given
-- order, and the hand-offs of `serve`.
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
    SELECT i.*, pg_catalog.lag(i.name) OVER o IS DISTINCT FROM i.name AS is_first,
           pg_catalog.lead(i.name) OVER o IS DISTINCT FROM i.name AS is_last
      FROM unnest(p_names, p_ids) WITH ORDINALITY AS i(name, id, position) WINDOW o AS (ORDER BY i.name)
  LOOP
    IF v_item.is_first THEN
      v_in_use := @schema@.enter(v_item.name);
      v_ended := false;
    END IF;
    CONTINUE WHEN NOT v_in_use;
    DELETE FROM @schema@.waiters w WHERE w.client = p_client AND w.id = v_item.id AND w.name = v_item.name;
    v_ended := v_ended OR FOUND;
    IF NOT FOUND THEN
      v_live := @schema@.end_hold(v_item.name, v_item.id);
      v_ended := v_ended OR v_live IS NOT NULL;
      IF v_live THEN
        v_letters[v_item.position] := 'r';
      END IF;
    END IF;
    IF v_item.is_last AND v_ended THEN
      v_served := v_served || @schema@.serve(v_item.name, p_client);
    END IF;
  END LOOP;
  RETURN pg_catalog.array_to_string(v_letters, '') || v_served;
END $$;
