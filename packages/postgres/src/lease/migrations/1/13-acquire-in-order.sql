-- Makes attempts of one client on one name, one after the other. Reply: for each in the given order a line as of `acquire`,
-- and after them the hand-offs of `serve`.
CREATE FUNCTION @schema@.acquire_in_order(p_name pg_catalog.bytea, p_ids pg_catalog.text[], p_kinds smallint[], p_weights integer[],
    p_permits integer[], p_ttls double precision[], p_labels pg_catalog.text[], p_client pg_catalog.text, p_steals boolean[],
    p_enqueues boolean[], p_max_waiters integer[]) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_reply text;
  v_first text;
  v_replies text[];
  v_served text := '';
BEGIN
  FOR v_position IN 1 .. pg_catalog.cardinality(p_ids) LOOP
    v_reply := @schema@.acquire(p_name, p_ids[v_position], p_kinds[v_position], p_weights[v_position], p_permits[v_position],
                                p_ttls[v_position], p_labels[v_position], p_client, p_steals[v_position],
                                p_enqueues[v_position], p_max_waiters[v_position]);
    v_first := pg_catalog.split_part(v_reply, E'\n', 1);
    v_replies[v_position] := v_first;
    v_served := v_served || pg_catalog.substr(v_reply, pg_catalog.length(v_first) + 1);
  END LOOP;
  RETURN pg_catalog.array_to_string(v_replies, E'\n') || v_served;
END $$;
