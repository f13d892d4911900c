-- The whole schema, version 1. Run once, in the transaction that also sets application_id and user_version.
-- Times are microseconds of the machine's monotonic clock, good for one boot only. Names are UTF-8 bytes.
-- A hold or waiter has a kind (0 exclusive, 1 shared, 2 permit) and a weight.

CREATE TABLE state (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  boot TEXT NOT NULL,                       -- the boot of the machine whose clock the times of other rows are readings of
  token INTEGER NOT NULL                    -- the last fencing token: one counter for all resources, never set back
);

CREATE TABLE holds (
  resource BLOB NOT NULL,
  acquisition_id TEXT NOT NULL,
  kind INTEGER NOT NULL,
  weight INTEGER NOT NULL,
  permits INTEGER NOT NULL,                 -- the limit of a permit's resource, the same in all its rows; 1 for the other kinds
  token INTEGER NOT NULL,
  granted_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,              -- negative: stolen; it would have ended then
  ttl INTEGER NOT NULL,                     -- of the grant or its last renewal: nothing can expire later than now + ttl
  label TEXT,
  PRIMARY KEY (resource, acquisition_id)
) WITHOUT ROWID;

-- A backend object of some process, while it has waiters. One row keeps all its waiters alive.
CREATE TABLE clients (
  client INTEGER PRIMARY KEY,
  alive_until INTEGER NOT NULL,
  pid INTEGER NOT NULL,
  pid_space TEXT NOT NULL                   -- where that pid means something: a pid namespace
);

CREATE TABLE waiters (
  resource BLOB NOT NULL,
  ticket INTEGER NOT NULL,                  -- the order of service within a resource
  client INTEGER NOT NULL,
  acquisition_id TEXT NOT NULL,
  kind INTEGER NOT NULL,
  weight INTEGER NOT NULL,
  permits INTEGER NOT NULL,
  enqueued_at INTEGER NOT NULL,
  label TEXT,
  PRIMARY KEY (resource, ticket)
) WITHOUT ROWID;

CREATE UNIQUE INDEX waiters_of_client ON waiters (client, acquisition_id);
