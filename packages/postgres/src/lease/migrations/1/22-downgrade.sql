-- Turns an exclusive hold into a shared one, with the same token and end. Reply: h and the ms that are left, or a letter of
-- `renew`; and the hand-offs of `serve`.
CREATE FUNCTION @schema@.downgrade(p_name pg_catalog.bytea, p_id pg_catalog.text, p_token bigint, p_client pg_catalog.text)
    RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_ends timestamptz;
BEGIN
  IF NOT @schema@.enter(p_name) THEN
    RETURN 'f';
  END IF;
  INSERT INTO @schema@.shares (name, id, kind, weight, token, granted_at, expires_at, label)
    SELECT locks.name, locks.id, 1 /* shared */, 1, locks.token, locks.granted_at, locks.expires_at, locks.label
    FROM @schema@.locks
    WHERE locks.name = p_name AND locks.id = p_id AND locks.expires_at > pg_catalog.clock_timestamp();
  IF FOUND THEN
    UPDATE @schema@.locks SET id = NULL WHERE locks.name = p_name;
  END IF;
  SELECT shares.expires_at INTO v_ends FROM @schema@.shares
    WHERE shares.name = p_name AND shares.id = p_id AND shares.expires_at > pg_catalog.clock_timestamp();
  IF NOT FOUND THEN
    RETURN @schema@.loss(p_name, p_id, p_token);
  END IF;
  RETURN 'h ' || @schema@.ms_until(v_ends) || @schema@.serve(p_name, p_client, NULL);
END $$;
