-- Ends a hold of this very acquisition. Reply: r (it was held) or n (it was not, or had run out), and what `serve` gave.
CREATE FUNCTION @schema@.release(p_name bytea, p_id text, p_client text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_live boolean;
BEGIN
  -- An enqueue under way holds this row: the condition is looked at again when that is done, so no waiter is missed.
  DELETE FROM @schema@.locks l WHERE l.name = p_name AND l.id = p_id AND NOT l.queued
    RETURNING l.expires_at > clock_timestamp() INTO v_live;
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

-- On a locked resource: whether the hold was live; null when it was not there.
CREATE FUNCTION @schema@.end_hold(p_name bytea, p_id text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_live boolean;
BEGIN
  UPDATE @schema@.locks l SET id = NULL, pushed_to = NULL WHERE l.name = p_name AND l.id = p_id
    RETURNING l.expires_at > clock_timestamp() INTO v_live;
  IF NOT FOUND THEN
    DELETE FROM @schema@.shares s WHERE s.name = p_name AND s.id = p_id
      RETURNING s.expires_at > clock_timestamp() INTO v_live;
  END IF;
  RETURN v_live;
END $$;

-- Afterwards the acquisition neither holds nor waits. Reply: what `serve` gave.
CREATE FUNCTION @schema@.abandon(p_name bytea, p_id text, p_client text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_waited boolean;
BEGIN
  IF NOT @schema@.enter(p_name) THEN
    RETURN '';
  END IF;
  DELETE FROM @schema@.waiters w WHERE w.client = p_client AND w.id = p_id AND w.name = p_name;
  v_waited := FOUND;
  IF @schema@.end_hold(p_name, p_id) IS NULL AND NOT v_waited THEN
    RETURN '';
  END IF;
  RETURN @schema@.serve(p_name, p_client);
END $$;
