-- Locks the row of a resource; false when nobody holds it or waits for it. The transaction must be at read committed: every
-- later statement must see what the transactions committed that had the row locked before.
CREATE FUNCTION @schema@.enter(p_name pg_catalog.bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF pg_catalog.current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'locks need transactions at read committed, not %', pg_catalog.current_setting('transaction_isolation')
      USING ERRCODE = 'LK001',
            HINT = 'Use ALTER ROLE … SET default_transaction_isolation = ''read committed'' for the role of the locks.';
  END IF;
  PERFORM 1 FROM @schema@.locks WHERE locks.name = p_name FOR UPDATE;
  RETURN FOUND;
END $$;
