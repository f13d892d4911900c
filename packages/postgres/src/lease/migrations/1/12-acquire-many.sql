-- Attempts several names in one step, all or nothing. Reply: null when one of them is contended; else, for each in the given
-- order, a line "g TOKEN" or "h TOKEN MS", and after them the hand-offs of `serve`.
CREATE FUNCTION @schema@.acquire_many(p_names pg_catalog.bytea[], p_ids pg_catalog.text[], p_kinds smallint[], p_weights integer[],
    p_permits integer[], p_ttls double precision[], p_labels pg_catalog.text[], p_client pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_item record;
  v_reply text;
  v_grants text[];
  v_served text := '';
BEGIN
  FOR v_item IN
    SELECT * FROM unnest(p_names, p_ids, p_kinds, p_weights, p_permits, p_ttls, p_labels) WITH ORDINALITY
      AS item(name, id, kind, weight, permits, ttl_ms, label, position)
      ORDER BY item.name
  LOOP
    v_reply := @schema@.acquire(v_item.name, v_item.id, v_item.kind, v_item.weight, v_item.permits, v_item.ttl_ms,
                                v_item.label, p_client, false, false, -1);
    IF pg_catalog.left(v_reply, 1) IN ('q', 'c') THEN
      RAISE EXCEPTION 'contended' USING ERRCODE = 'LK002';
    END IF;
    v_grants[v_item.position] := pg_catalog.split_part(v_reply, E'\n', 1);
    v_served := v_served || pg_catalog.substr(v_reply, pg_catalog.length(v_grants[v_item.position]) + 1);
  END LOOP;
  RETURN pg_catalog.array_to_string(v_grants, E'\n') || v_served;
EXCEPTION WHEN SQLSTATE 'LK002' THEN
  RETURN NULL;
END $$;
