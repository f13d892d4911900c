-- Ends the hold of one acquisition. Reply: r (it was held) or n (it was not held, or had expired), and the hand-offs of
-- `serve`.
CREATE FUNCTION @schema@.release(p_name pg_catalog.bytea, p_id pg_catalog.text, p_client pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_live boolean;
BEGIN
  IF NOT @schema@.enter(p_name) THEN
    RETURN 'n';
  END IF;
  -- An exclusive hold that `serve` ends by itself costs one update, and not two.
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

-- Ends a hold of a resource that the caller has locked. Reply: whether the hold was live; null: there was none.
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
