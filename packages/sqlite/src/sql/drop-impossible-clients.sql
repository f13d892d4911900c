-- Removes clients of an earlier boot, as drop-impossible-holds.sql does with holds.
-- ?1 latest possible alive_until
-- rows: client
DELETE FROM clients WHERE alive_until > ?1 RETURNING client;
