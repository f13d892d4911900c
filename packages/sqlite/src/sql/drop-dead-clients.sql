-- After drop-dead-waiters.sql.
-- ?1 now
DELETE FROM clients WHERE alive_until <= ?1;
