-- Ends the holds of a resource, or only p_id's. Rows: the columns of state.sql for each hold that ended, and then one with
-- role 's' whose id is what `serve` gave.
CREATE FUNCTION @schema@.force_release(p_name bytea, p_id text, p_client text)
    RETURNS TABLE (name bytea, role text, id text, kind integer, weight integer, permits integer, label text,
                   token bigint, age_ms double precision, left_ms double precision)
    LANGUAGE plpgsql AS $$
BEGIN
  IF NOT @schema@.enter(p_name) THEN
    RETURN;
  END IF;
  RETURN QUERY SELECT * FROM @schema@.state(ARRAY[p_name]) s WHERE s.role = 'h' AND (p_id IS NULL OR s.id = p_id);
  UPDATE @schema@.locks l SET id = NULL, pushed_to = NULL WHERE l.name = p_name AND (p_id IS NULL OR l.id = p_id);
  DELETE FROM @schema@.shares s WHERE s.name = p_name AND (p_id IS NULL OR s.id = p_id);
  RETURN QUERY SELECT p_name, 's', @schema@.serve(p_name, p_client), 0, 0, 0, '', 0::bigint,
    0::double precision, 0::double precision;
END $$;
