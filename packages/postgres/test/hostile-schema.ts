import type pg from 'pg';

/**
 * Creates the schema `hostile`, with objects that a role may put before, or behind, PostgreSQL's own on a search_path: a
 * function for each of PostgreSQL's with the same arguments, and with arguments that fit a literal better; an operator for
 * each operator; a type and a table for those that the package names. Each counts how often it was called.
 */
export async function createHostileSchema(session: pg.Client): Promise<void> {
  await session.query(`
    CREATE SCHEMA hostile;
    GRANT USAGE ON SCHEMA hostile TO PUBLIC;
    CREATE SEQUENCE hostile.captures;
    DO $do$
    DECLARE
      v_name text;
      v_arguments text;
      v_result text;
      v_left text;
      v_right text;
      v_count integer := 0;
      v_body CONSTANT text := $body$ LANGUAGE plpgsql AS $f$ BEGIN
        PERFORM pg_catalog.nextval('hostile.captures'::pg_catalog.regclass);
        RAISE EXCEPTION 'captured: a foreign function or operator ran';
      END $f$ $body$;
    BEGIN
      FOR v_name, v_arguments, v_result IN
        SELECT p.proname, pg_get_function_identity_arguments(p.oid), format_type(p.prorettype, NULL)
          FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind IN ('f', 'a')
        UNION
        SELECT p.proname, rtrim(repeat(t.type || ', ', p.pronargs), ', '), 'text'
          FROM pg_proc p, (VALUES ('text'), ('integer'), ('bigint')) t(type)
          WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.pronargs BETWEEN 1 AND 3
            AND p.proname ~ '^(pg_|nextval|set_config|current_setting|encode|hashtext|to_reg|left|length|substr|unnest|array|starts|count|max|min)'
      LOOP
        BEGIN
          EXECUTE format('CREATE FUNCTION hostile.%I(%s) RETURNS %s %s', v_name, v_arguments, v_result, v_body);
          v_count := v_count + 1;
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
      END LOOP;
      IF v_count < 2000 THEN RAISE EXCEPTION 'only % functions', v_count; END IF;
      v_count := 0;
      FOR v_name, v_left, v_right IN
        SELECT o.oprname, format_type(o.oprleft, NULL), format_type(o.oprright, NULL) FROM pg_operator o
          WHERE o.oprleft <> 0 AND o.oprright <> 0
        UNION
        SELECT o.name, l.type, r.type FROM unnest(ARRAY['=', '<>', '<', '<=', '>', '>=', '||', '+', '*', '~~']) o(name),
          unnest(ARRAY['text', 'varchar', 'bigint', 'integer', 'smallint', 'numeric', 'name', 'oid', 'double precision']) l(type),
          unnest(ARRAY['text', 'varchar', 'bigint', 'integer', 'smallint', 'numeric', 'name', 'oid', 'double precision']) r(type)
      LOOP
        BEGIN
          v_count := v_count + 1;
          EXECUTE format('CREATE FUNCTION hostile.operator_%s(%s, %s) RETURNS boolean %s', v_count, v_left, v_right, v_body);
          EXECUTE format('CREATE OPERATOR hostile.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = hostile.operator_%s)',
            v_name, v_left, v_right, v_count);
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
      END LOOP;
    END $do$;
    CREATE FUNCTION hostile.count_state(bigint) RETURNS bigint LANGUAGE plpgsql AS
      $f$ BEGIN PERFORM pg_catalog.nextval('hostile.captures'::pg_catalog.regclass); RETURN 7; END $f$;
    DROP FUNCTION hostile.count();
    CREATE AGGREGATE hostile.count(*) (SFUNC = hostile.count_state, STYPE = bigint, INITCOND = '0');
    ${[
      'text',
      'bytea',
      'timestamptz',
      'regclass',
      'oid',
      'name',
      'int2',
      'int4',
      'int8',
      'float8',
      'bool',
      'record',
    ]
      .map((type) => `CREATE TYPE hostile."${type}" AS ENUM ('hostile');`)
      .join('\n')}
    ${['pg_locks', 'pg_stat_activity', 'pg_namespace', 'pg_tables', 'pg_database', 'pg_settings', 'pg_class']
      .map((table) => `CREATE TABLE hostile.${table} (hostile integer);`)
      .join('\n')}
  `);
}

/** How often anything in the schema `hostile` was called. */
export async function captures(session: pg.Client): Promise<number> {
  const { rows } = await session.query<{ last: string; called: boolean }>(
    'SELECT last_value AS last, is_called AS called FROM hostile.captures',
  );
  return rows[0]?.called === true ? Number(rows[0].last) : 0;
}
