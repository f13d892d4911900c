-- Sets the limit of the permits of a resource. Reply: s (set, or the resource is not in use) or "c KIND WEIGHT PERMITS", a
-- mode in use that contradicts; and the hand-offs of `serve`.
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
