-- Ends the exclusive hold of p_adopts and grants it to p_id, ahead of the queue. Reply:
--   g TOKEN       granted now, for the ttl
--   h TOKEN MS    granted by an earlier sending, for MS more
--   q 0 -1        p_adopts does not hold
CREATE FUNCTION @schema@.adopt(p_name pg_catalog.bytea, p_id pg_catalog.text, p_adopts pg_catalog.text, p_ttl_ms double precision,
    p_label pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_lock @schema@.locks;
  v_moment timestamptz;
  v_token bigint;
BEGIN
  IF NOT @schema@.enter(p_name) THEN
    RETURN 'q 0 -1';
  END IF;
  v_moment := pg_catalog.clock_timestamp();
  SELECT * INTO v_lock FROM @schema@.locks WHERE locks.name = p_name AND locks.expires_at > v_moment;
  IF v_lock.id = p_id THEN
    RETURN 'h ' || v_lock.token || ' ' || @schema@.ms_until(v_lock.expires_at);
  END IF;
  IF v_lock.id = p_adopts THEN
    v_token := pg_catalog.nextval('@schema@.numbers'::pg_catalog.regclass);
    UPDATE @schema@.locks SET id = p_id, token = v_token, granted_at = v_moment,
      expires_at = v_moment + p_ttl_ms * interval '1 millisecond', label = p_label, stolen = v_token
      WHERE locks.name = p_name;
    RETURN 'g ' || v_token;
  END IF;
  RETURN 'q 0 -1';
END $$;
