-- Version 1: the tables, then the functions in the other files. "@schema@" stands for the schema that the user named.
-- Times are of the server's clock: clock_timestamp(), since now() is the start of a transaction. Names are UTF-8 bytes.
-- Kinds: 0 exclusive, 1 shared, 2 permit. Locks are taken in this order: rows of `locks` by name, each followed by its
-- `shares`, and at last a row of `clients`.

CREATE TABLE @schema@.schema_version (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  swept_at timestamptz NOT NULL DEFAULT clock_timestamp()   -- when somebody last looked for what nobody asks for
);

INSERT INTO @schema@.schema_version (version) VALUES (1);

-- Fencing tokens and places in queues, of all resources. Without a cache: what is drawn later is higher.
CREATE SEQUENCE @schema@.numbers AS bigint;

-- The options of these tables: many dead rows, cleared often; never cut back to a page, lest a plan reads them whole.

-- A resource that is held or waited for. Whoever grants or ends anything of a resource locks this row first.
CREATE TABLE @schema@.locks (
  name bytea PRIMARY KEY,
  queued boolean NOT NULL,         -- false: nobody waits. An enqueue sets it on the row that a release must lock
  permits integer,                 -- the limit while permits live here; null for the other kinds
  stolen bigint NOT NULL,          -- holds with a lower token were taken over
  id text,                         -- the exclusive hold, where there is one
  token bigint,
  granted_at timestamptz,
  expires_at timestamptz,
  pushed_to text,                  -- the client to which it was handed over, until that is heard of
  label text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        vacuum_truncate = false);

-- Shared holds and permits.
CREATE TABLE @schema@.shares (
  name bytea NOT NULL,
  id text NOT NULL,
  kind smallint NOT NULL,
  weight integer NOT NULL,
  token bigint NOT NULL,
  granted_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  pushed_to text,
  label text,
  PRIMARY KEY (name, id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        vacuum_truncate = false);

CREATE TABLE @schema@.waiters (
  name bytea NOT NULL,
  ticket bigint NOT NULL,          -- the order of service
  client text NOT NULL,
  id text NOT NULL,
  kind smallint NOT NULL,
  weight integer NOT NULL,
  ttl_ms double precision NOT NULL,
  enqueued_at timestamptz NOT NULL,
  label text,
  PRIMARY KEY (name, ticket)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        vacuum_truncate = false);

CREATE UNIQUE INDEX waiters_of_client ON @schema@.waiters (client, id);

-- A backend object of some process, while it has waiters. It listens on the channel locks_<client>.
CREATE TABLE @schema@.clients (
  client text PRIMARY KEY,
  alive_until timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        vacuum_truncate = false);
