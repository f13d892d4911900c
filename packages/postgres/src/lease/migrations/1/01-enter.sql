-- Locks a resource; false when nobody holds it or waits for it. Read committed is needed: every statement after this one
-- must see what those did who had the lock before.
CREATE FUNCTION @schema@.enter(p_name bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'locks need transactions at read committed, not %', current_setting('transaction_isolation')
      USING ERRCODE = 'LK001',
            HINT = 'Use ALTER ROLE … SET default_transaction_isolation = ''read committed'' for the role of the locks.';
  END IF;
  PERFORM 1 FROM @schema@.locks l WHERE l.name = p_name FOR UPDATE;
  RETURN FOUND;
END $$;
