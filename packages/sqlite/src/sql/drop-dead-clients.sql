-- Removes clients that were silent for too long; run after drop-dead-waiters.sql.
-- ?1 now
-- rows: client
DELETE FROM clients WHERE alive_until <= ?1 RETURNING client;
