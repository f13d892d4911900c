-- Sets the limit of the permits that live on a resource. Reply: s (set, or nothing lives there) or "c KIND WEIGHT PERMITS";
-- and what `serve` gave.
CREATE FUNCTION @schema@.resize(p_name bytea, p_permits integer, p_client text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_lock @schema@.locks;
  v_served text;
BEGIN
  IF NOT @schema@.enter(p_name) THEN
    RETURN 's';
  END IF;
  v_served := @schema@.serve(p_name, p_client);
  SELECT * INTO v_lock FROM @schema@.locks l WHERE l.name = p_name;
  IF NOT FOUND THEN
    RETURN 's' || v_served;
  END IF;
  IF v_lock.permits IS NULL THEN
    RETURN 'c ' || @schema@.living_mode(v_lock) || v_served;
  END IF;
  UPDATE @schema@.locks l SET permits = p_permits WHERE l.name = p_name;
  RETURN 's' || v_served || @schema@.serve(p_name, p_client);
END $$;
