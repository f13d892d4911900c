-- Ends the holds of a resource, or only the hold of p_id. Rows: the columns of `state` for each hold that ended, and then one
-- with role 's' whose id has the hand-offs of `serve`.
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
