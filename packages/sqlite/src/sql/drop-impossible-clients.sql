-- As drop-impossible-holds.sql.
-- ?1 latest possible alive_until
DELETE FROM clients WHERE alive_until > ?1;
