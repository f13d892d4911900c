-- Version 1: the tables, then the functions in the other files. "@schema@" stands for the schema that the user named.
-- Times are of the server's clock: clock_timestamp(), since now() is the start of a transaction. Names are UTF-8 bytes.
-- The caller's search_path is never used: a role that may create objects could put its own in front there. Each function that
-- clients call sets its own path (pg_temp last, which would otherwise come first for tables), and qualifies types and what it
-- calls. Functions in PL/pgSQL that only these call run in their path: setting it again takes 25 µs.
-- Kinds: 0 exclusive, 1 shared, 2 permit. Transactions lock rows in this order: rows of `locks` by name, each followed by
-- its `shares`, and last a row of `clients`.

CREATE TABLE @schema@.schema_version (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  swept_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()   -- when `sweep` last ran
);

INSERT INTO @schema@.schema_version (version) VALUES (1);

-- Fencing tokens and queue positions of all resources. Without a cache, so that a number drawn later is higher.
CREATE SEQUENCE @schema@.numbers AS bigint;

-- Storage options: many rows die, so vacuum comes often. It never truncates: for a table of one page the planner would
-- choose a sequential scan.

-- A resource that is held or waited for. Whoever grants or ends anything of a resource locks this row first.
CREATE TABLE @schema@.locks (
  name pg_catalog.bytea PRIMARY KEY,
  queued boolean NOT NULL,         -- whether somebody waits. An enqueue sets it on the row that a release must lock
  permits integer,                 -- the limit while permits live here; null for the other kinds
  stolen bigint NOT NULL,          -- holds with a lower token were stolen
  id pg_catalog.text,                         -- the exclusive holder, if there is one
  token bigint,
  granted_at pg_catalog.timestamptz,
  expires_at pg_catalog.timestamptz,
  label pg_catalog.text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        vacuum_truncate = false);

-- Shared holds and permits.
CREATE TABLE @schema@.shares (
  name pg_catalog.bytea NOT NULL,
  id pg_catalog.text NOT NULL,
  kind smallint NOT NULL,
  weight integer NOT NULL,
  token bigint NOT NULL,
  granted_at pg_catalog.timestamptz NOT NULL,
  expires_at pg_catalog.timestamptz NOT NULL,
  label pg_catalog.text,
  PRIMARY KEY (name, id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        vacuum_truncate = false);

CREATE TABLE @schema@.waiters (
  name pg_catalog.bytea NOT NULL,
  ticket bigint NOT NULL,          -- the order of service
  client pg_catalog.text NOT NULL,
  id pg_catalog.text NOT NULL,
  kind smallint NOT NULL,
  weight integer NOT NULL,
  ttl_ms double precision NOT NULL,
  enqueued_at pg_catalog.timestamptz NOT NULL,
  label pg_catalog.text,
  PRIMARY KEY (name, ticket)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        vacuum_truncate = false);

CREATE UNIQUE INDEX waiters_of_client ON @schema@.waiters (client, id);

-- A backend object of some process, while it has waiters.
CREATE TABLE @schema@.clients (
  client pg_catalog.text PRIMARY KEY,
  alive_until pg_catalog.timestamptz NOT NULL,
  -- The session that listens on the channel locks_<client> holds the advisory lock of this key, which ends with the session.
  -- Null: none listens.
  listener bigint,
  server_start pg_catalog.timestamptz         -- of the server that had that session: a restart has ended the sessions of all
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        vacuum_truncate = false);
