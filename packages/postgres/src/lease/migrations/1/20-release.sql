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
  UPDATE @schema@.locks l SET id = NULL, pushed_to = NULL WHERE l.name = p_name AND l.id = p_id
    RETURNING l.expires_at > pg_catalog.clock_timestamp() INTO v_live;
  IF NOT FOUND THEN
    DELETE FROM @schema@.shares s WHERE s.name = p_name AND s.id = p_id
      RETURNING s.expires_at > pg_catalog.clock_timestamp() INTO v_live;
  END IF;
  RETURN v_live;
END $$;

-- Ends the holds of these acquisitions, and removes them from the queues. Reply: the hand-offs of `serve`.
CREATE FUNCTION @schema@.abandon(p_names pg_catalog.bytea[], p_ids pg_catalog.text[], p_client pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_item record;
  v_id text;
  v_ended boolean;
  v_served text := '';
BEGIN
  FOR v_item IN
    SELECT i.name, pg_catalog.array_agg(i.id) AS ids FROM unnest(p_names, p_ids) AS i(name, id) GROUP BY i.name ORDER BY i.name
  LOOP
    CONTINUE WHEN NOT @schema@.enter(v_item.name);
    v_ended := false;
    -- One by one: for all at once PostgreSQL may compare each waiter of the name with every abandoned id.
    FOREACH v_id IN ARRAY v_item.ids LOOP
      DELETE FROM @schema@.waiters w WHERE w.client = p_client AND w.id = v_id AND w.name = v_item.name;
      v_ended := v_ended OR FOUND;
    END LOOP;
    UPDATE @schema@.locks l SET id = NULL, pushed_to = NULL WHERE l.name = v_item.name AND l.id = ANY (v_item.ids);
    v_ended := v_ended OR FOUND;
    DELETE FROM @schema@.shares s USING pg_catalog.unnest(v_item.ids) AS i(id)
      WHERE s.name = v_item.name AND s.id = i.id;
    IF v_ended OR FOUND THEN
      v_served := v_served || @schema@.serve(v_item.name, p_client);
    END IF;
  END LOOP;
  RETURN v_served;
END $$;
